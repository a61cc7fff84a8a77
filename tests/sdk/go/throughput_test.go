package sdk

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// A container that asks for more than its throughput: the SDK waits and tries again.
func TestThroughput(t *testing.T) {
	w := start(t, "http", "--memory")
	container := w.container(t, nil)
	call := "containers/d/" + container.ID() + "/throughput"
	w.admin(t, http.MethodPut, call, `{"mode":"enforced"}`)
	// What it costs is taken when it is done, and is more than there is for two seconds: a clock
	// that runs again may be anywhere in its second.
	create(t, container, fmt.Sprintf(`{"id":"large","pk":"x","text":"%s"}`, strings.Repeat("x", 1_900_000)))
	w.setClock(t, `{"frozen":false}`)
	create(t, container, `{"id":"small","pk":"x"}`)
	w.setClock(t, `{"frozen":true}`)
	var figures struct{ Total struct{ Throttled int } }
	check(t, json.Unmarshal(w.admin(t, http.MethodGet, call+"?seconds=1", ""), &figures))
	if figures.Total.Throttled == 0 {
		t.Error("nothing was refused")
	}
	w.advance(t, 5)
	expect(t, ids(t, container, x), []string{"large", "small"})
}
