package driver_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// groceryHandlers returns handlers for SynthDev's example, written from its state table.
func groceryHandlers() handlers {
	const talk = "store_conversation"
	return handlers{
		"addInitialCustomerMessage": func(t *this) (any, error) {
			t.addMessage(talk, llm.User, t.stringVar("initial_customer_request"))
			return nil, nil
		},
		"addWorkerResponse": func(t *this) (any, error) {
			t.addMessage(talk, llm.Assistant, t.lastMessage().Content)
			return nil, nil
		},
		"alwaysTransitionToCustomer": func(*this) (any, error) { return "customer_decision", nil },
		"processCustomerDecision": func(t *this) (any, error) {
			a := t.callArguments()
			t.data["continue_shopping"] = a["continue_shopping"]
			if a["continue_shopping"] == true {
				t.addMessage(talk, llm.User, a["continue_message"].(string))
			} else {
				t.data["interaction_summary"] = a["shopping_summary"]
			}
			return nil, nil
		},
		"decideNextState": func(t *this) (any, error) {
			if t.data["continue_shopping"] == true {
				return "worker_response", nil
			}
			return "stop", nil
		},
	}
}

// TestGrocery runs SynthDev's example with its recorded responses. It checks the output,
// the states, and the tools of each request. It is skipped if the corpus is not available.
func TestGrocery(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "..", "shared", "corpus", "agents")
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Skip("the corpus is not available")
		}
		return data
	}
	d := parseMachine(t, string(read("grocery_store_test.json")), string(read("roles.json")))
	recorded := read("grocery_responses.json")
	r := newRig(t, newMemory(), []*machinedef.Definition{d}, groceryHandlers(), string(recorded))
	id := r.startRun("grocery_store_test", map[string]any{
		"initial_customer_request": "Hi, I'm looking for ingredients to make pasta dinner for 6 people tomorrow. Do you have good marinara sauce?",
	})
	got := r.driveRun(id)
	var recording struct {
		Responses []json.RawMessage
		Requests  []struct {
			Tools      []struct{ Function struct{ Name string } }
			ToolChoice *struct{ Function struct{ Name string } } `json:"tool_choice"`
		}
	}
	if err := json.Unmarshal(recorded, &recording); err != nil {
		t.Fatal(err)
	}
	last, err := llm.ReadCompletion(recording.Responses[len(recording.Responses)-1])
	if err != nil {
		t.Fatal(err)
	}
	var end struct {
		Summary string `json:"shopping_summary"`
	}
	if err := json.Unmarshal([]byte(last.Message.ToolCalls[0].Function.Arguments), &end); err != nil {
		t.Fatal(err)
	}
	var output string
	if err := json.Unmarshal(got.Output, &output); err != nil || output != end.Summary {
		t.Errorf("the output is %s, want %q", got.Output, end.Summary)
	}
	want := []string{"start", "customer_decision", "worker_response", "customer_decision", "worker_response", "customer_decision"}
	if diff := cmp.Diff(want, got.States); diff != "" || got.Status != "completed" {
		t.Errorf("%s, states %s", got.Status, diff)
	}
	if len(r.model.requests) != len(recording.Requests) {
		t.Fatalf("%d requests, not %d", len(r.model.requests), len(recording.Requests))
	}
	for i, was := range recording.Requests {
		now := r.model.requests[i]
		var names, wanted []string
		for _, tool := range now.Tools {
			names = append(names, tool.Name)
		}
		for _, tool := range was.Tools {
			wanted = append(wanted, tool.Function.Name)
		}
		force := ""
		if was.ToolChoice != nil {
			force = was.ToolChoice.Function.Name
		}
		if diff := cmp.Diff(wanted, names); diff != "" || now.Force != force {
			t.Errorf("request %d forces %q; tools: %s", i+1, now.Force, diff)
		}
	}
	// The customer sees the conversation with swapped roles.
	second := r.model.requests[1].Messages
	if len(second) != 3 || second[1].Role != llm.Assistant || second[2].Role != llm.User {
		t.Errorf("the customer's messages are %+v", second)
	}
}
