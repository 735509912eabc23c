# tablegate in a container, for tests as for service, without root:
#
#   docker build --tag tablegate .
#   docker run --publish 8000:8000 tablegate                                     in place of amazon/dynamodb-local
#   docker run --publish 10002:10002 tablegate azurite --tableHost 0.0.0.0       in place of Azurite's tables
#   docker run --publish 8000:8000 tablegate serve --auth strict --host 0.0.0.0  its own command line
#
# compose.yaml shows how it is run for service.

FROM python:3.13-slim AS build
COPY requirements.lock /tmp/
RUN python -m venv /opt/tablegate && /opt/tablegate/bin/pip install --no-cache-dir --requirement /tmp/requirements.lock
COPY pyproject.toml README.md LICENSE /tmp/tablegate/
COPY tablegate /tmp/tablegate/tablegate
COPY gateway /tmp/tablegate/gateway
COPY adapters /tmp/tablegate/adapters
COPY migrations /tmp/tablegate/migrations
COPY transfer /tmp/tablegate/transfer
RUN /opt/tablegate/bin/pip install --no-cache-dir --no-deps /tmp/tablegate \
    && /opt/tablegate/bin/pip uninstall --yes pip

FROM python:3.13-slim
COPY --from=build /opt/tablegate /opt/tablegate
# A replaced entry point names one of these programs (Testcontainers for .NET and Node: azurite).
RUN for name in tablegate azurite azurite-table java; do ln -s /opt/tablegate/bin/tablegate "/usr/local/bin/$name"; done \
    # Folders and user are those of the images that this one stands for: mounted volumes belong to user 1000.
    && useradd --uid 1000 --create-home --home-dir /home/dynamodblocal tablegate \
    && install --directory --owner tablegate /data
USER tablegate
# Databases with relative paths are in the volume.
WORKDIR /data
VOLUME /data
EXPOSE 8000 10002
ENTRYPOINT ["tablegate"]
CMD ["-jar", "DynamoDBLocal.jar", "-inMemory"]
