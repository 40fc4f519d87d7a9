package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/machine/driver"
)

// corpusMachines is the directory of the unmodified SynthDev machines.
const corpusMachines = "../../../shared/corpus/agents"

// groceryMachine is the sample machine in its own directory, with handlers for Guideway and
// its recording.
type groceryMachine struct {
	dir       string
	responses []json.RawMessage
	requests  []groceryRequest
	recording []byte
}

// groceryRequest contains the compared parts of a request. The recording has no messages,
// and has the description of each tool only once.
type groceryRequest struct {
	Model      string          `json:"model"`
	MaxTokens  int             `json:"max_completion_tokens"`
	Tools      []groceryTool   `json:"tools"`
	ToolChoice json.RawMessage `json:"tool_choice"`
}

type groceryTool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func newGrocery(t *testing.T) *groceryMachine {
	t.Helper()
	g := &groceryMachine{dir: t.TempDir()}
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Skipf("the corpus is not available: %v", err)
		}
		return data
	}
	for from, to := range map[string]string{
		filepath.Join(corpusMachines, "grocery_store_test.json"): "grocery_store_test.json",
		filepath.Join(corpusMachines, "roles.json"):              "roles.json",
		"testdata/machines/grocery.js":                           "grocery_store_test/script.js",
	} {
		writeFile(t, filepath.Join(g.dir, to), string(read(from)))
	}
	g.recording = read(filepath.Join(corpusMachines, "grocery_responses.json"))
	all := struct {
		Responses *[]json.RawMessage `json:"responses"`
		Requests  *[]groceryRequest  `json:"requests"`
	}{&g.responses, &g.requests}
	if err := json.Unmarshal(g.recording, &all); err != nil {
		t.Fatal(err)
	}
	return g
}

// checkEnd checks that a run has the recorded end.
func (g *groceryMachine) checkEnd(t *testing.T, out []byte) {
	t.Helper()
	var got driver.Status
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want := []string{"start", "customer_decision", "worker_response", "customer_decision", "worker_response", "customer_decision"}
	if diff := cmp.Diff(want, got.States); diff != "" || got.Status != "completed" || got.Usage.Calls != 6 {
		t.Errorf("it is %s after %d calls; states: %s", got.Status, got.Usage.Calls, diff)
	}
	var last struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct{ Function struct{ Arguments string } } `json:"tool_calls"`
			}
		}
	}
	var arguments struct {
		Summary json.RawMessage `json:"shopping_summary"`
	}
	if err := json.Unmarshal(g.responses[len(g.responses)-1], &last); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(last.Choices[0].Message.ToolCalls[0].Function.Arguments), &arguments); err != nil {
		t.Fatal(err)
	}
	if !sameJSON(got.Output, arguments.Summary) {
		t.Errorf("the output is %s, want %s", got.Output, arguments.Summary)
	}
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

const groceryInput = "initial_customer_request=Hi,_do_you_have_good_marinara_sauce?"

// The sample machine runs in real script workers to the recorded end. A scripted model
// returns the recorded responses, from the recording and from a plain list.
func TestGroceryScripted(t *testing.T) {
	t.Parallel()
	g := newGrocery(t)
	list, err := json.Marshal(g.responses)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string][]byte{"recording": g.recording, "list": list} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host, out := newTerminal(t, nil)
			script := filepath.Join(t.TempDir(), "answers.json")
			writeFile(t, script, string(file))
			host.Dir = g.dir
			if code := Run(t.Context(), []string{"machine", "run", "./grocery_store_test.json", "--input", groceryInput, "--model", "scripted:" + script, "--json"}, host); code != app.ExitOK {
				t.Fatalf("exit code %d: %s", code, out)
			}
			g.checkEnd(t, out.Bytes())
		})
	}
}

// The requests over HTTP have the recorded model, token limit, tools and tool choice.
func TestGroceryOverHTTP(t *testing.T) {
	t.Parallel()
	g := newGrocery(t)
	var mu sync.Mutex
	var sent []groceryRequest
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request groceryRequest
		if err == nil {
			err = json.Unmarshal(body, &request)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil || len(sent) == len(g.responses) || r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(g.responses[len(sent)])
		sent = append(sent, request)
	}))
	defer server.Close()
	host, out := newTerminal(t, map[string]string{"OPENAI_API_KEY": "a-key"})
	host.Dir = g.dir
	models, err := json.Marshal(map[string]any{"models": map[string]any{
		"fast": map[string]any{"provider": "openai", "model": g.requests[0].Model, "baseUrl": server.URL + "/v1", "maxTokens": g.requests[0].MaxTokens},
	}})
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(t.TempDir(), "guideway.json")
	writeFile(t, settings, string(models))
	if code := Run(t.Context(), []string{"--config", settings, "machine", "run", "./grocery_store_test.json", "--input", groceryInput, "--json"}, host); code != app.ExitOK {
		t.Fatalf("exit code %d: %s", code, out)
	}
	g.checkEnd(t, out.Bytes())
	plain := cmp.Transformer("JSON", func(raw json.RawMessage) (v any) {
		_ = json.Unmarshal(raw, &v)
		return v
	})
	if diff := cmp.Diff(g.requests, sent, plain); diff != "" {
		t.Errorf("the requests differ (-recorded +sent):\n%s", diff)
	}
}

// The other SynthDev machines use the older dialect: they are recognized, and refused with
// instructions to convert them.
func TestOldMachines(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"arbitrary_filename.json", "coder_reviewer.json"} {
		path, err := filepath.Abs(filepath.Join(corpusMachines, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Skipf("the corpus is not available: %v", err)
		}
		host, out := newTerminal(t, nil)
		code := Run(t.Context(), []string{"validate", "--json", path}, host)
		text := out.String()
		if code != app.ExitInvalid || !strings.Contains(text, `"machine-dialect-old"`) || !strings.Contains(text, "From actions to handlers") {
			t.Errorf("%s: exit code %d: %s", name, code, text)
		}
		if bytes.Count(out.Bytes(), []byte(`"machine-dialect-old"`)) != 1 {
			t.Errorf("%s: the diagnostic is repeated: %s", name, text)
		}
	}
}
