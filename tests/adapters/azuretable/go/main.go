// Cases for aztables, the Go SDK, against a live gateway: main ENDPOINT ACCOUNT KEY.
// Prints one line of JSON for each case: {"name", "ok", "error"}. Its multipart reader is the strictest of all SDKs'.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	background = context.Background()
	service    *aztables.ServiceClient
	made       int
)

type entity map[string]any

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func expect(truth bool, message string, arguments ...any) {
	if !truth {
		panic(fmt.Sprintf(message, arguments...))
	}
}

func newTable() *aztables.Client {
	made++
	client := service.NewClient(fmt.Sprintf("go%dx%d", os.Getpid(), made))
	_, err := client.CreateTable(background, nil)
	check(err)
	return client
}

func bytesOf(parts entity) []byte {
	encoded, err := json.Marshal(parts)
	check(err)
	return encoded
}

func add(table *aztables.Client, parts entity) aztables.AddEntityResponse {
	reply, err := table.AddEntity(background, bytesOf(parts), nil)
	check(err)
	return reply
}

func get(table *aztables.Client, partition, row string) entity {
	reply, err := table.GetEntity(background, partition, row, nil)
	check(err)
	found := entity{}
	check(json.Unmarshal(reply.Value, &found))
	return found
}

func refused(err error, status int, code string) {
	var refusal *azcore.ResponseError
	expect(errors.As(err, &refusal), "was not refused: %v", err)
	expect(refusal.StatusCode == status, "status %d: %v", refusal.StatusCode, err)
	expect(refusal.ErrorCode == code, "code %s: %v", refusal.ErrorCode, err)
}

func list(table *aztables.Client, filter string, top int32) (pages []int, found []entity) {
	options := &aztables.ListEntitiesOptions{Filter: &filter, Top: &top}
	pager := table.NewListEntitiesPager(options)
	for pager.More() {
		page, err := pager.NextPage(background)
		check(err)
		pages = append(pages, len(page.Entities))
		for _, each := range page.Entities {
			parts := entity{}
			check(json.Unmarshal(each, &parts))
			found = append(found, parts)
		}
	}
	return
}

var cases = []struct {
	name string
	run  func()
}{
	{"tables", func() {
		table := newTable()
		_, err := table.CreateTable(background, nil)
		refused(err, 409, "TableAlreadyExists")
		seen := 0
		pager := service.NewListTablesPager(nil)
		for pager.More() {
			page, err := pager.NextPage(background)
			check(err)
			seen += len(page.Tables)
		}
		expect(seen >= 1, "no tables")
		_, err = table.Delete(background, nil)
		check(err)
		_, err = table.AddEntity(background, bytesOf(entity{"PartitionKey": "p", "RowKey": "r"}), nil)
		refused(err, 404, "TableNotFound")
	}},
	{"entities of every type", func() {
		table := newTable()
		moment := aztables.EDMDateTime(time.Date(2024, 2, 29, 12, 34, 56, 789000000, time.UTC))
		sent := aztables.EDMEntity{
			Entity: aztables.Entity{PartitionKey: "p", RowKey: "r"},
			Properties: map[string]any{
				"Text": "Grüße", "Int": int32(5), "Big": aztables.EDMInt64(1 << 40), "Double": 1.5, "Yes": true,
				"Guid": aztables.EDMGUID("c9da6455-213d-42c9-9a79-3e9149a57833"),
				"Data": aztables.EDMBinary([]byte{0, 255}), "Moment": moment,
			},
		}
		encoded, err := json.Marshal(sent)
		check(err)
		_, err = table.AddEntity(background, encoded, nil)
		check(err)
		reply, err := table.GetEntity(background, "p", "r", nil)
		check(err)
		found := aztables.EDMEntity{}
		check(json.Unmarshal(reply.Value, &found))
		expect(found.Properties["Big"] == aztables.EDMInt64(1<<40), "big %v", found.Properties["Big"])
		expect(found.Properties["Int"] == int32(5), "int %v", found.Properties["Int"])
		expect(found.Properties["Double"] == 1.5, "double %v", found.Properties["Double"])
		expect(time.Time(found.Properties["Moment"].(aztables.EDMDateTime)).Equal(time.Time(moment)), "moment")
		expect(string(found.Properties["Guid"].(aztables.EDMGUID)) == "c9da6455-213d-42c9-9a79-3e9149a57833", "guid")
		expect(string(found.Properties["Data"].(aztables.EDMBinary)) == "\x00\xff", "data")
	}},
	{"add twice, get what is gone", func() {
		table := newTable()
		add(table, entity{"PartitionKey": "p", "RowKey": "r"})
		_, err := table.AddEntity(background, bytesOf(entity{"PartitionKey": "p", "RowKey": "r"}), nil)
		refused(err, 409, "EntityAlreadyExists")
		_, err = table.GetEntity(background, "p", "gone", nil)
		refused(err, 404, "ResourceNotFound")
	}},
	{"merge and replace", func() {
		table := newTable()
		add(table, entity{"PartitionKey": "p", "RowKey": "r", "A": 1})
		merge := &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge}
		_, err := table.UpdateEntity(background, bytesOf(entity{"PartitionKey": "p", "RowKey": "r", "B": 2}), merge)
		check(err)
		expect(get(table, "p", "r")["A"] == 1.0, "merge lost A")
		replace := &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace}
		_, err = table.UpsertEntity(background, bytesOf(entity{"PartitionKey": "p", "RowKey": "r", "C": 3}), replace)
		check(err)
		expect(get(table, "p", "r")["A"] == nil, "replace kept A")
	}},
	{"etags", func() {
		table := newTable()
		etag := add(table, entity{"PartitionKey": "p", "RowKey": "r"}).ETag
		changed := bytesOf(entity{"PartitionKey": "p", "RowKey": "r", "A": 1})
		options := &aztables.UpdateEntityOptions{IfMatch: &etag, UpdateMode: aztables.UpdateModeReplace}
		_, err := table.UpdateEntity(background, changed, options)
		check(err)
		_, err = table.UpdateEntity(background, changed, options)
		refused(err, 412, "UpdateConditionNotSatisfied")
		_, err = table.DeleteEntity(background, "p", "r", &aztables.DeleteEntityOptions{IfMatch: &etag})
		refused(err, 412, "UpdateConditionNotSatisfied")
		_, err = table.DeleteEntity(background, "p", "r", nil)
		check(err)
	}},
	{"odd keys", func() {
		table := newTable()
		for _, odd := range []string{"it's", "a b", "100%", "ключ", "a+b", "(x)=;,", "🙂"} {
			add(table, entity{"PartitionKey": odd, "RowKey": odd, "Odd": odd})
			expect(get(table, odd, odd)["Odd"] == odd, "key %q", odd)
			_, err := table.DeleteEntity(background, odd, odd, nil)
			check(err)
		}
	}},
	{"queries and pages", func() {
		table := newTable()
		for row := 0; row < 7; row++ {
			add(table, entity{"PartitionKey": "p", "RowKey": fmt.Sprint(row), "N": row})
		}
		pages, found := list(table, "", 3)
		expect(fmt.Sprint(pages) == "[3 3 1]", "pages %v", pages)
		expect(found[6]["RowKey"] == "6", "order %v", found)
		_, found = list(table, "PartitionKey eq 'p' and N ge 5", 1000)
		expect(len(found) == 2, "filter %v", found)
	}},
	{"a transaction of every kind", func() {
		table := newTable()
		for _, row := range []string{"b", "c", "d"} {
			add(table, entity{"PartitionKey": "p", "RowKey": row, "Old": 1})
		}
		action := func(kind aztables.TransactionType, row string) aztables.TransactionAction {
			return aztables.TransactionAction{ActionType: kind, Entity: bytesOf(entity{"PartitionKey": "p", "RowKey": row, "N": 1})}
		}
		_, err := table.SubmitTransaction(background, []aztables.TransactionAction{
			action(aztables.TransactionTypeAdd, "a"),
			action(aztables.TransactionTypeUpdateMerge, "b"),
			action(aztables.TransactionTypeUpdateReplace, "c"),
			action(aztables.TransactionTypeDelete, "d"),
			action(aztables.TransactionTypeInsertMerge, "e"),
			action(aztables.TransactionTypeInsertReplace, "f"),
		}, nil)
		check(err)
		_, found := list(table, "", 1000)
		expect(len(found) == 5, "found %v", found)
		expect(found[1]["Old"] == 1.0 && found[2]["Old"] == nil, "found %v", found)
	}},
	{"a transaction that fails does nothing", func() {
		table := newTable()
		add(table, entity{"PartitionKey": "p", "RowKey": "there"})
		_, err := table.SubmitTransaction(background, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeAdd, Entity: bytesOf(entity{"PartitionKey": "p", "RowKey": "new"})},
			{ActionType: aztables.TransactionTypeAdd, Entity: bytesOf(entity{"PartitionKey": "p", "RowKey": "there"})},
		}, nil)
		// The SDK reports the outer reply, which is 202; the part's error is in its body.
		var refusal *azcore.ResponseError
		expect(errors.As(err, &refusal) && refusal.StatusCode == 202, "was not refused: %v", err)
		expect(strings.Contains(err.Error(), "\"code\":\"EntityAlreadyExists\""), "%v", err)
		_, found := list(table, "", 1000)
		expect(len(found) == 1, "found %v", found)
	}},
	{"a hundred in a transaction", func() {
		table := newTable()
		var actions []aztables.TransactionAction
		for row := 0; row < 100; row++ {
			parts := entity{"PartitionKey": "p", "RowKey": fmt.Sprintf("%03d", row)}
			actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: bytesOf(parts)})
		}
		_, err := table.SubmitTransaction(background, actions, nil)
		check(err)
		_, found := list(table, "", 1000)
		expect(len(found) == 100, "found %d", len(found))
	}},
	{"access policies", func() {
		table := newTable()
		start, expiry := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2034, 1, 1, 0, 0, 0, 0, time.UTC)
		id, permission := "main", "r"
		policy := aztables.SignedIdentifier{ID: &id, AccessPolicy: &aztables.AccessPolicy{Start: &start, Expiry: &expiry, Permission: &permission}}
		_, err := table.SetAccessPolicy(background, &aztables.SetAccessPolicyOptions{TableACL: []*aztables.SignedIdentifier{&policy}})
		check(err)
		reply, err := table.GetAccessPolicy(background, nil)
		check(err)
		expect(*reply.SignedIdentifiers[0].AccessPolicy.Permission == "r", "policy")
		expect(reply.SignedIdentifiers[0].AccessPolicy.Expiry.Equal(expiry), "expiry")
	}},
	{"service properties", func() {
		_, err := service.GetProperties(background, nil)
		check(err)
	}},
	{"a signature for one table", func() {
		table := newTable()
		add(table, entity{"PartitionKey": "p", "RowKey": "r"})
		url, err := table.GetTableSASURL(aztables.SASPermissions{Read: true}, time.Now().Add(-time.Minute), time.Now().Add(time.Hour))
		check(err)
		if account := "/" + os.Args[2]; strings.HasSuffix(os.Args[1], account) {
			url = strings.Replace(url, account, account+"/", 1) // the SDK forgets the slash behind a path
		}
		guest, err := aztables.NewClientWithNoCredential(url, nil)
		check(err)
		expect(get(guest, "p", "r")["RowKey"] == "r", "guest")
		_, err = guest.AddEntity(background, bytesOf(entity{"PartitionKey": "p", "RowKey": "x"}), nil)
		refused(err, 403, "AuthorizationPermissionMismatch")
	}},
}

func run(name string, body func()) {
	var failure any
	func() {
		defer func() { failure = recover() }()
		body()
	}()
	result := map[string]any{"name": name, "ok": failure == nil}
	if failure != nil {
		result["error"] = fmt.Sprint(failure)
	}
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
}

func main() {
	endpoint, account, key := os.Args[1], os.Args[2], os.Args[3]
	credential, err := aztables.NewSharedKeyCredential(account, key)
	check(err)
	service, err = aztables.NewServiceClientWithSharedKey(endpoint, credential, nil)
	check(err)
	for _, each := range cases {
		run(each.name, each.run)
	}
}
