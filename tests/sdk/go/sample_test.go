// Package sdk runs the sample of docs/sdks.md as the page has it, and batches, over http with
// a server that keeps its data in memory, and over https with one that keeps it on disk.
package sdk

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	_ "github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos" // The sample needs it.
)

var (
	block   = regexp.MustCompile("(?s)```go\n(.*?)```")
	address = regexp.MustCompile(`AccountEndpoint=https://localhost:(\d+)/;AccountKey=([^;]+);`)
)

func TestTheSampleOfThePageRuns(t *testing.T) {
	page, err := os.ReadFile("../../../docs/sdks.md")
	check(t, err)
	// Within the module, so that the SDK is found.
	folder, err := os.MkdirTemp(".", "sample-")
	check(t, err)
	defer os.RemoveAll(folder)
	check(t, os.WriteFile(filepath.Join(folder, "main.go"), block.FindSubmatch(page)[1], 0o600))

	for scheme, storage := range map[string]string{"http": "--memory", "https": "--on-disk"} {
		t.Run(scheme, func(t *testing.T) {
			port, key := serve(t, storage)
			sample := exec.Command("go", "run", "./"+folder)
			sample.Env = append(os.Environ(),
				"COSMOS_ENDPOINT="+scheme+"://localhost:"+port,
				"COSMOS_KEY="+key,
				"SSL_CERT_FILE="+certificate(t, port))
			printed, err := sample.CombinedOutput()
			if err != nil || string(printed) != "3\n" {
				t.Fatalf("%v: %s", err, printed)
			}
		})
	}
}

// serve starts a server that dies with the test, and reads its port and key.
func serve(t *testing.T, storage string) (port, key string) {
	server := exec.Command("../serve", storage)
	server.Stderr = os.Stderr
	hold, err := server.StdinPipe()
	check(t, err)
	printed, err := server.StdoutPipe()
	check(t, err)
	check(t, server.Start())
	t.Cleanup(func() {
		hold.Close()
		server.Wait()
	})

	var banner strings.Builder
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		banner.WriteString(lines.Text() + "\n")
		if strings.TrimSpace(lines.Text()) == "Started" {
			found := address.FindStringSubmatch(banner.String())
			return found[1], found[2]
		}
	}
	t.Fatalf("The server ended before it had started:\n%s", banner.String())
	return "", ""
}

// certificate is the file of the server's certificate.
func certificate(t *testing.T, port string) string {
	answer, err := http.Get("http://localhost:" + port + "/_explorer/emulator.pem")
	check(t, err)
	defer answer.Body.Close()
	pem, err := io.ReadAll(answer.Body)
	check(t, err)
	file := filepath.Join(t.TempDir(), "emulator.pem")
	check(t, os.WriteFile(file, pem, 0o600))
	return file
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
