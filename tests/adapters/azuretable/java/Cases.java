// Cases for azure-data-tables, the Java SDK, against a live gateway: Cases CONNECTION_STRING.
// Prints one line for each case: "ok NAME", or "failed NAME: REASON".

import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.rest.PagedIterable;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.*;

import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;

public class Cases {
    static TableServiceClient service;
    static int made = 0;

    interface Case { void run() throws Exception; }

    static void expect(boolean truth, Object actual) {
        if (!truth) throw new AssertionError(String.valueOf(actual));
    }

    static TableClient newTable() {
        return service.createTable("java" + ProcessHandle.current().pid() + "x" + ++made);
    }

    static TableEntity entity(String partition, String row, Object... pairs) {
        TableEntity made = new TableEntity(partition, row);
        for (int at = 0; at < pairs.length; at += 2) made.addProperty((String) pairs[at], pairs[at + 1]);
        return made;
    }

    static void refused(int status, TableErrorCode code, Case body) throws Exception {
        try {
            body.run();
        } catch (TableTransactionFailedException refusal) {
            expect(refusal.getValue().getErrorCode().equals(code), refusal.getValue().getErrorCode());
            return;
        } catch (TableServiceException refusal) {
            expect(refusal.getResponse().getStatusCode() == status, refusal);
            expect(refusal.getValue().getErrorCode().equals(code), refusal.getValue().getErrorCode());
            return;
        }
        throw new AssertionError("was not refused");
    }

    static String rows(PagedIterable<TableEntity> found) {
        return found.stream().map(TableEntity::getRowKey).collect(Collectors.joining(","));
    }

    static void runCase(String name, Case body) {
        try {
            body.run();
            System.out.println("ok " + name);
        } catch (Throwable reason) {
            System.out.println("failed " + name + ": " + reason.toString().replace('\n', ' '));
        }
    }

    public static void main(String[] arguments) {
        service = new TableServiceClientBuilder().connectionString(arguments[0])
            .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1)))).buildClient();

        runCase("tables", () -> {
            TableClient table = newTable();
            service.createTableIfNotExists(table.getTableName());
            refused(409, TableErrorCode.TABLE_ALREADY_EXISTS, () -> service.createTable(table.getTableName()));
            ListTablesOptions named = new ListTablesOptions().setFilter("TableName eq '" + table.getTableName() + "'");
            expect(service.listTables(named, null, null).stream().count() == 1, "not listed");
            table.deleteTable();
            refused(404, TableErrorCode.TABLE_NOT_FOUND, () -> table.createEntity(entity("p", "r")));
        });
        runCase("every type", () -> {
            TableClient table = newTable();
            UUID id = UUID.randomUUID();
            OffsetDateTime moment = OffsetDateTime.parse("2024-02-29T12:34:56.789Z");
            table.createEntity(entity("p", "r", "text", "Grüße", "small", 5, "big", 1L << 40, "ratio", 1.5, "whole", 2.0,
                "yes", true, "id", id, "data", new byte[] {0, -1}, "moment", moment));
            Map<String, Object> found = table.getEntity("p", "r").getProperties();
            expect(found.get("text").equals("Grüße"), found);
            expect(found.get("small").equals(5), found);
            expect(found.get("big").equals(1L << 40), found);
            expect(found.get("ratio").equals(1.5), found);
            expect(found.get("whole").equals(2.0), found.get("whole").getClass());
            expect(found.get("yes").equals(true), found);
            expect(found.get("id").equals(id), found);
            expect(((byte[]) found.get("data"))[1] == -1, found);
            expect(found.get("moment").equals(moment), found);
        });
        runCase("create twice, get what is gone", () -> {
            TableClient table = newTable();
            table.createEntity(entity("p", "r"));
            refused(409, TableErrorCode.ENTITY_ALREADY_EXISTS, () -> table.createEntity(entity("p", "r")));
            refused(404, TableErrorCode.RESOURCE_NOT_FOUND, () -> table.getEntity("p", "gone"));
        });
        runCase("merge, replace, upsert", () -> {
            TableClient table = newTable();
            table.upsertEntity(entity("p", "r", "a", 1));
            table.updateEntity(entity("p", "r", "b", 2), TableEntityUpdateMode.MERGE);
            expect(table.getEntity("p", "r").getProperty("a").equals(1), "merge lost a");
            table.updateEntity(entity("p", "r", "c", 3), TableEntityUpdateMode.REPLACE);
            expect(table.getEntity("p", "r").getProperty("a") == null, "replace kept a");
            refused(404, TableErrorCode.RESOURCE_NOT_FOUND, () -> table.updateEntity(entity("p", "gone")));
        });
        runCase("etags", () -> {
            TableClient table = newTable();
            table.createEntity(entity("p", "r"));
            TableEntity old = table.getEntity("p", "r");
            table.updateEntityWithResponse(old.addProperty("a", 1), TableEntityUpdateMode.REPLACE, true, null, null);
            refused(412, TableErrorCode.UPDATE_CONDITION_NOT_SATISFIED,
                () -> table.updateEntityWithResponse(old, TableEntityUpdateMode.REPLACE, true, null, null));
            refused(412, TableErrorCode.UPDATE_CONDITION_NOT_SATISFIED, () -> table.deleteEntityWithResponse(old, true, null, null));
            table.deleteEntity("p", "r");
        });
        runCase("odd keys", () -> {
            TableClient table = newTable();
            for (String odd : new String[] {"it's", "a b", "100%", "ключ", "a+b", "(x)=;,", "\uD83D\uDE42"}) {
                table.createEntity(entity(odd, odd, "odd", odd));
                expect(table.getEntity(odd, odd).getProperty("odd").equals(odd), odd);
                table.deleteEntity(odd, odd);
            }
        });
        runCase("queries and pages", () -> {
            TableClient table = newTable();
            for (int row = 0; row < 7; row++) table.createEntity(entity("p", "" + row, "n", row));
            ListEntitiesOptions pages = new ListEntitiesOptions().setTop(3);
            List<Integer> sizes = new ArrayList<>();
            table.listEntities(pages, null, null).iterableByPage().forEach(page -> sizes.add(page.getValue().size()));
            expect(sizes.equals(List.of(3, 3, 1)), sizes);
            String found = rows(table.listEntities(new ListEntitiesOptions().setFilter("n ge 2 and n lt 4"), null, null));
            expect(found.equals("2,3"), found);
            TableEntity one = table.getEntityWithResponse("p", "3", List.of("n"), null, null).getValue();
            expect(one.getProperty("n").equals(3), one.getProperties());
        });
        runCase("a transaction of every kind", () -> {
            TableClient table = newTable();
            for (String row : new String[] {"b", "c", "d"}) table.createEntity(entity("p", row, "old", 1));
            table.submitTransaction(List.of(
                new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "a")),
                new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, entity("p", "b", "n", 1)),
                new TableTransactionAction(TableTransactionActionType.UPDATE_REPLACE, entity("p", "c", "n", 1)),
                new TableTransactionAction(TableTransactionActionType.DELETE, entity("p", "d")),
                new TableTransactionAction(TableTransactionActionType.UPSERT_MERGE, entity("p", "e")),
                new TableTransactionAction(TableTransactionActionType.UPSERT_REPLACE, entity("p", "f"))));
            expect(rows(table.listEntities()).equals("a,b,c,e,f"), rows(table.listEntities()));
            expect(table.getEntity("p", "b").getProperty("old").equals(1), "merge lost old");
            expect(table.getEntity("p", "c").getProperty("old") == null, "replace kept old");
        });
        runCase("a transaction that fails does nothing", () -> {
            TableClient table = newTable();
            table.createEntity(entity("p", "there"));
            try {
                table.submitTransaction(List.of(
                    new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "new")),
                    new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "there"))));
                throw new AssertionError("was not refused");
            } catch (TableTransactionFailedException refusal) {
                expect(refusal.getFailedTransactionActionIndex() == 1, refusal.getFailedTransactionActionIndex());
                expect(refusal.getValue().getErrorCode().equals(TableErrorCode.ENTITY_ALREADY_EXISTS), refusal);
            }
            expect(rows(table.listEntities()).equals("there"), rows(table.listEntities()));
        });
        runCase("a hundred in a transaction", () -> {
            TableClient table = newTable();
            List<TableTransactionAction> actions = new ArrayList<>();
            for (int row = 0; row < 100; row++)
                actions.add(new TableTransactionAction(TableTransactionActionType.CREATE, entity("p", "" + row)));
            table.submitTransaction(actions);
            expect(table.listEntities().stream().count() == 100, "not a hundred");
        });
        runCase("access policies", () -> {
            TableClient table = newTable();
            TableAccessPolicy policy = new TableAccessPolicy().setStartsOn(OffsetDateTime.parse("2024-01-01T00:00:00Z"))
                .setExpiresOn(OffsetDateTime.parse("2034-01-01T00:00:00Z")).setPermissions("r");
            table.setAccessPolicies(List.of(new TableSignedIdentifier("main").setAccessPolicy(policy)));
            TableSignedIdentifier found = table.getAccessPolicies().getIdentifiers().get(0);
            expect(found.getAccessPolicy().getPermissions().equals("r"), found);
            expect(found.getAccessPolicy().getExpiresOn().equals(policy.getExpiresOn()), found);
        });
        runCase("service properties", () -> {
            TableServiceProperties properties = service.getProperties();
            properties.getLogging().setDeleteLogged(true);
            service.setProperties(properties);
            expect(service.getProperties().getLogging().isDeleteLogged(), "not kept");
        });
    }
}
