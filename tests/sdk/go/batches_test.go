package sdk

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos"
)

var x = azcosmos.NewPartitionKeyString("x")

// Transactional batches: all of it or nothing, in one partition and one second.
func TestBatches(t *testing.T) {
	tests := map[string]func(*testing.T, *world){
		"EveryKindOfOperation":           everyKindOfOperation,
		"AnOperationSeesThoseBeforeIt":   anOperationSeesThoseBeforeIt,
		"OneThatFailsTakesAllWithIt":     oneThatFailsTakesAllWithIt,
		"OneToAHundred":                  oneToAHundred,
		"ContentIsShownIfAsked":          contentIsShownIfAsked,
		"PartitionsOfEveryKind":          partitionsOfEveryKind,
		"ItemsExpireExactly":             itemsExpireExactly,
		"PatchesSeeThoseBeforeThem":      patchesSeeThoseBeforeThem,
		"ItemsArePatched":                itemsArePatched,
		"TheVersionThatIsMeantIsChanged": theVersionThatIsMeantIsChanged,
	}
	for scheme, storage := range map[string]string{"http": "--memory", "https": "--on-disk"} {
		t.Run(scheme, func(t *testing.T) {
			world := start(t, scheme, storage)
			for name, test := range tests {
				t.Run(name, func(t *testing.T) { test(t, world) })
			}
		})
	}
}

func everyKindOfOperation(t *testing.T, w *world) {
	container := w.container(t, nil)
	create(t, container, `{"id":"old","pk":"x"}`)
	batch := container.NewTransactionalBatch(x)
	batch.CreateItem([]byte(`{"id":"a","pk":"x","n":1}`), nil)
	batch.UpsertItem([]byte(`{"id":"b","pk":"x"}`), nil)
	batch.ReplaceItem("old", []byte(`{"id":"old","pk":"x","n":2}`), nil)
	batch.ReadItem("a", nil)
	batch.DeleteItem("b", nil)
	response := run(t, container, batch, true)
	expect(t, statuses(response), []int32{201, 201, 200, 200, 204})
	expect(t, number(t, response.OperationResults[3].ResourceBody), 1)
	expect(t, ids(t, container, x), []string{"a", "old"})
}

func anOperationSeesThoseBeforeIt(t *testing.T, w *world) {
	container := w.container(t, nil)
	batch := container.NewTransactionalBatch(x)
	batch.CreateItem([]byte(`{"id":"a","pk":"x","n":1}`), nil)
	batch.ReplaceItem("a", []byte(`{"id":"a","pk":"x","n":2}`), nil)
	batch.ReadItem("a", nil)
	batch.DeleteItem("a", nil)
	batch.UpsertItem([]byte(`{"id":"a","pk":"x","n":3}`), nil)
	response := run(t, container, batch, true)
	expect(t, statuses(response), []int32{201, 200, 200, 204, 201})
	expect(t, number(t, response.OperationResults[2].ResourceBody), 2)
}

func oneThatFailsTakesAllWithIt(t *testing.T, w *world) {
	container := w.container(t, nil)
	create(t, container, `{"id":"old","pk":"x"}`)
	wrong := azcore.ETag("wrong")
	onlyIf := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &wrong}
	for _, failing := range []struct {
		status int32
		add    func(*azcosmos.TransactionalBatch)
	}{
		{409, func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"old","pk":"x"}`), nil) }},
		{404, func(b *azcosmos.TransactionalBatch) { b.ReadItem("nobody", nil) }},
		{404, func(b *azcosmos.TransactionalBatch) { b.DeleteItem("nobody", nil) }},
		{400, func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"b","pk":"y"}`), nil) }},
		{400, func(b *azcosmos.TransactionalBatch) { b.CreateItem([]byte(`{"id":"b","pk":"x","ttl":0}`), nil) }},
		{412, func(b *azcosmos.TransactionalBatch) { b.DeleteItem("old", onlyIf) }},
	} {
		batch := container.NewTransactionalBatch(x)
		batch.CreateItem([]byte(`{"id":"a","pk":"x"}`), nil)
		failing.add(&batch)
		batch.CreateItem([]byte(`{"id":"c","pk":"x"}`), nil)
		response := run(t, container, batch, false)
		expect(t, statuses(response), []int32{424, failing.status, 424})
		expect(t, ids(t, container, x), []string{"old"})
	}
}

func theVersionThatIsMeantIsChanged(t *testing.T, w *world) {
	container := w.container(t, nil)
	etag := create(t, container, `{"id":"a","pk":"x"}`)
	batch := container.NewTransactionalBatch(x)
	onlyIf := &azcosmos.TransactionalBatchItemOptions{IfMatchETag: &etag}
	batch.ReplaceItem("a", []byte(`{"id":"a","pk":"x","n":1}`), onlyIf)
	run(t, container, batch, true)
	expect(t, statuses(run(t, container, batch, false)), []int32{412})
}

func oneToAHundred(t *testing.T, w *world) {
	container := w.container(t, nil)
	batch := container.NewTransactionalBatch(x)
	for n := range 100 {
		batch.CreateItem(fmt.Appendf(nil, `{"id":"%d","pk":"x"}`, n), nil)
	}
	more := batch
	more.CreateItem([]byte(`{"id":"a","pk":"x"}`), nil)
	refused(t, container, more, 400)
	large := container.NewTransactionalBatch(x)
	large.CreateItem(fmt.Appendf(nil, `{"id":"a","pk":"x","text":"%s"}`, strings.Repeat("x", 2_300_000)), nil)
	refused(t, container, large, 413)
	expect(t, len(ids(t, container, x)), 0)
	run(t, container, batch, true)
	expect(t, len(ids(t, container, x)), 100)
}

// Where a batch reads, the SDK asks for all of it.
func contentIsShownIfAsked(t *testing.T, w *world) {
	container := w.container(t, nil)
	for _, asked := range []bool{true, false} {
		batch := container.NewTransactionalBatch(x)
		batch.UpsertItem([]byte(`{"id":"a","pk":"x"}`), nil)
		options := &azcosmos.TransactionalBatchOptions{EnableContentResponseOnWrite: asked}
		response, err := container.ExecuteTransactionalBatch(context.Background(), batch, options)
		check(t, err)
		written := response.OperationResults[0]
		expect(t, len(written.ResourceBody) > 0, asked)
		expect(t, written.ETag != "", true)
	}
}

func partitionsOfEveryKind(t *testing.T, w *world) {
	flat := w.container(t, nil)
	deep := w.container(t, func(properties *azcosmos.ContainerProperties) {
		properties.PartitionKeyDefinition = azcosmos.PartitionKeyDefinition{
			Paths: []string{"/tenant", "/user"}, Kind: azcosmos.PartitionKeyKindMultiHash, Version: 2,
		}
	})
	for _, sent := range []struct {
		container *azcosmos.ContainerClient
		item      string
		key       azcosmos.PartitionKey
	}{
		{flat, `{"id":"a","pk":7}`, azcosmos.NewPartitionKeyNumber(7)},
		{flat, `{"id":"a","pk":true}`, azcosmos.NewPartitionKeyBool(true)},
		{flat, `{"id":"a","pk":null}`, azcosmos.NullPartitionKey},
		{deep, `{"id":"a","tenant":"t","user":7}`, azcosmos.NewPartitionKeyString("t").AppendNumber(7)},
	} {
		batch := sent.container.NewTransactionalBatch(sent.key)
		batch.CreateItem([]byte(sent.item), nil)
		batch.ReadItem("a", nil)
		expect(t, statuses(run(t, sent.container, batch, true)), []int32{201, 200})
	}
}

func itemsExpireExactly(t *testing.T, w *world) {
	container := w.container(t, func(properties *azcosmos.ContainerProperties) {
		seconds := int32(100)
		properties.DefaultTimeToLive = &seconds
	})
	batch := container.NewTransactionalBatch(x)
	batch.CreateItem([]byte(`{"id":"default","pk":"x"}`), nil)
	batch.CreateItem([]byte(`{"id":"never","pk":"x","ttl":-1}`), nil)
	batch.UpsertItem([]byte(`{"id":"short","pk":"x","ttl":10}`), nil)
	run(t, container, batch, true)
	w.advance(t, 9)
	expect(t, ids(t, container, x), []string{"default", "never", "short"})
	w.advance(t, 1)
	expect(t, ids(t, container, x), []string{"default", "never"})

	late := container.NewTransactionalBatch(x)
	late.CreateItem([]byte(`{"id":"b","pk":"x"}`), nil)
	late.ReadItem("short", nil)
	expect(t, statuses(run(t, container, late, false)), []int32{424, 404})
	w.advance(t, 90)
	expect(t, ids(t, container, x), []string{"never"})
}

func patchesSeeThoseBeforeThem(t *testing.T, w *world) {
	container := w.container(t, nil)
	batch := container.NewTransactionalBatch(x)
	batch.CreateItem([]byte(`{"id":"a","pk":"x","n":1}`), nil)
	batch.PatchItem("a", more(), nil)
	batch.PatchItem("a", more(), nil)
	batch.ReadItem("a", nil)
	response := run(t, container, batch, true)
	expect(t, statuses(response), []int32{201, 200, 200, 200})
	expect(t, number(t, response.OperationResults[3].ResourceBody), 3)

	conditional := more()
	conditional.SetCondition("from c where c.n = 9")
	late := container.NewTransactionalBatch(x)
	late.CreateItem([]byte(`{"id":"b","pk":"x"}`), nil)
	late.PatchItem("a", conditional, nil)
	expect(t, statuses(run(t, container, late, false)), []int32{424, 412})
}

func itemsArePatched(t *testing.T, w *world) {
	container := w.container(t, nil)
	create(t, container, `{"id":"a","pk":"x","n":1}`)
	options := &azcosmos.ItemOptions{EnableContentResponseOnWrite: true}
	response, err := container.PatchItem(context.TODO(), x, "a", more(), options)
	check(t, err)
	expect(t, number(t, response.Value), 2)
	conditional := more()
	conditional.SetCondition("from c where c.n = 9")
	_, err = container.PatchItem(context.TODO(), x, "a", conditional, nil)
	var refusal *azcore.ResponseError
	if !errors.As(err, &refusal) || refusal.StatusCode != http.StatusPreconditionFailed {
		t.Fatal(err)
	}
}

func more() azcosmos.PatchOperations {
	operations := azcosmos.PatchOperations{}
	operations.AppendIncrement("/n", 1)
	return operations
}

// A server whose clock the tests move, and a database in it.
type world struct {
	database  *azcosmos.DatabaseClient
	port, key string
	made      int
}

func start(t *testing.T, scheme, storage string) *world {
	port, key := serve(t, storage)
	credential, err := azcosmos.NewKeyCredential(key)
	check(t, err)
	insecure := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // Its certificate is its own.
	}}
	options := &azcosmos.ClientOptions{ClientOptions: policy.ClientOptions{Transport: insecure}}
	client, err := azcosmos.NewClientWithKey(scheme+"://localhost:"+port, credential, options)
	check(t, err)
	_, err = client.CreateDatabase(context.Background(), azcosmos.DatabaseProperties{ID: "d"}, nil)
	check(t, err)
	database, err := client.NewDatabase("d")
	check(t, err)
	world := &world{database: database, port: port, key: key}
	world.setClock(t, `{"frozen":true}`)
	return world
}

// container makes one with the partition key /pk, changed as told.
func (w *world) container(t *testing.T, change func(*azcosmos.ContainerProperties)) *azcosmos.ContainerClient {
	w.made++
	properties := azcosmos.ContainerProperties{
		ID:                     fmt.Sprintf("c%d", w.made),
		PartitionKeyDefinition: azcosmos.PartitionKeyDefinition{Paths: []string{"/pk"}, Version: 2},
	}
	if change != nil {
		change(&properties)
	}
	_, err := w.database.CreateContainer(context.Background(), properties, nil)
	check(t, err)
	container, err := w.database.NewContainer(properties.ID)
	check(t, err)
	return container
}

func (w *world) advance(t *testing.T, seconds int) {
	w.setClock(t, fmt.Sprintf(`{"advanceSeconds":%d}`, seconds))
}

func (w *world) setClock(t *testing.T, change string) {
	w.admin(t, http.MethodPost, "clock", change)
}

// admin calls the admin API, and gives its answer.
func (w *world) admin(t *testing.T, method, call, change string) []byte {
	url := "http://localhost:" + w.port + "/_admin/v1/" + call
	request, err := http.NewRequest(method, url, bytes.NewBufferString(change))
	check(t, err)
	request.Header.Set("Authorization", "Bearer "+w.key)
	answer, err := http.DefaultClient.Do(request)
	check(t, err)
	defer answer.Body.Close()
	expect(t, answer.StatusCode, 200)
	body, err := io.ReadAll(answer.Body)
	check(t, err)
	return body
}

func create(t *testing.T, container *azcosmos.ContainerClient, item string) azcore.ETag {
	response, err := container.CreateItem(context.Background(), x, []byte(item), nil)
	check(t, err)
	return response.ETag
}

func run(
	t *testing.T, container *azcosmos.ContainerClient, batch azcosmos.TransactionalBatch, succeeds bool,
) azcosmos.TransactionalBatchResponse {
	t.Helper()
	response, err := container.ExecuteTransactionalBatch(context.Background(), batch, nil)
	check(t, err)
	expect(t, response.Success, succeeds)
	return response
}

// refused is a batch that is wrong as a whole.
func refused(t *testing.T, container *azcosmos.ContainerClient, batch azcosmos.TransactionalBatch, status int) {
	t.Helper()
	_, err := container.ExecuteTransactionalBatch(context.Background(), batch, nil)
	var answer *azcore.ResponseError
	if !errors.As(err, &answer) {
		t.Fatalf("The batch was not refused: %v", err)
	}
	expect(t, answer.StatusCode, status)
}

func statuses(response azcosmos.TransactionalBatchResponse) (statuses []int32) {
	for _, result := range response.OperationResults {
		statuses = append(statuses, result.StatusCode)
	}
	return statuses
}

func number(t *testing.T, item []byte) int {
	var parsed struct{ N int }
	check(t, json.Unmarshal(item, &parsed))
	return parsed.N
}

// ids are those of a partition, in order of their names.
func ids(t *testing.T, container *azcosmos.ContainerClient, key azcosmos.PartitionKey) (ids []string) {
	pages := container.NewQueryItemsPager("SELECT VALUE c.id FROM c ORDER BY c.id", key, nil)
	for pages.More() {
		page, err := pages.NextPage(context.Background())
		check(t, err)
		for _, row := range page.Items {
			var id string
			check(t, json.Unmarshal(row, &id))
			ids = append(ids, id)
		}
	}
	return ids
}

func expect(t *testing.T, found, expected any) {
	t.Helper()
	if !reflect.DeepEqual(found, expected) {
		t.Fatalf("found %v, expected %v", found, expected)
	}
}
