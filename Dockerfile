# tablegate in a container, for tests as for service, without root:
#
#   docker build --tag tablegate .
#   docker run --publish 8000:8000 tablegate                                     in place of amazon/dynamodb-local
#   docker run --publish 10002:10002 tablegate azurite --tableHost 0.0.0.0       in place of Azurite's tables
#   docker run --publish 8000:8000 tablegate serve --auth strict --host 0.0.0.0  its own command line
#
# compose.yaml shows how it is run for service. `make image` builds and checks it.

FROM python:3.13-slim AS build
# Compiled libraries come with symbols for debuggers, a third of what is installed. patchelf has laid out those in *.libs
# folders, and strip may break them.
RUN apt-get update && apt-get install --yes --no-install-recommends binutils
COPY requirements.lock /tmp/
RUN python -m venv /opt/tablegate && /opt/tablegate/bin/pip install --no-cache-dir --requirement /tmp/requirements.lock \
    && find /opt/tablegate -name "*.so" -not -path "*.libs/*" -exec strip --strip-unneeded {} +
COPY pyproject.toml README.md LICENSE /tmp/tablegate/
COPY tablegate /tmp/tablegate/tablegate
RUN /opt/tablegate/bin/pip install --no-cache-dir --no-deps /tmp/tablegate \
    && /opt/tablegate/bin/pip uninstall --yes pip

FROM python:3.13-slim
# The workflow of releases adds version, revision, source and time.
LABEL org.opencontainers.image.title="tablegate" \
      org.opencontainers.image.description="The DynamoDB, Azure Table and Alibaba Table Store APIs over SQLite or PostgreSQL" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/tablegate /opt/tablegate
# A replaced entry point names one of these programs (Testcontainers for .NET and Node: azurite).
RUN for name in tablegate azurite azurite-table java; do ln -s /opt/tablegate/bin/tablegate "/usr/local/bin/$name"; done \
    # Folders and user are those of the images that this one stands for: mounted volumes belong to user 1000.
    && useradd --uid 1000 --create-home --home-dir /home/dynamodblocal tablegate \
    && install --directory --owner tablegate /data
# By number: Kubernetes cannot see that a name is not root's.
USER 1000
# Databases with relative paths are in the volume.
WORKDIR /data
VOLUME /data
EXPOSE 8000 10002
# On the port of the settings, or on that of `azurite`.
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s --retries=3 \
    CMD tablegate healthcheck || tablegate healthcheck --url http://127.0.0.1:10002
ENTRYPOINT ["tablegate"]
CMD ["-jar", "DynamoDBLocal.jar", "-inMemory"]
