//go:build unix

package crashtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// fakeServers are the model and the tools. They count their requests and outlive every
// worker.
type fakeServers struct {
	*httptest.Server

	// The model sends a value to arrived for each request, and answers after held is closed.
	// Nil channels have no effect.
	arrived, held chan struct{}

	mu    sync.Mutex
	tasks map[string]*callCounts
}

// callCounts are the counts of one run.
type callCounts struct {
	// requests counts the requests by their position in the run, from 0.
	requests map[int]int
	// tools counts executions by the key of the call, names maps keys to tools.
	tools map[string]int
	names map[string]string
	// kept contains the keys of all calls so far. The idempotent tool executes no call
	// whose key is in it.
	kept map[string]bool
}

func newFakeServers(t *testing.T) *fakeServers {
	t.Helper()
	o := &fakeServers{tasks: map[string]*callCounts{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", o.serveModel)
	mux.HandleFunc("POST /tool/{task}", o.serveTool)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// updateCounts changes the counts of a task. The model identifies a run by its task, the
// tools by its id.
func (o *fakeServers) updateCounts(task string, change func(*callCounts)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.tasks[task]
	if s == nil {
		s = &callCounts{requests: map[int]int{}, tools: map[string]int{}, names: map[string]string{}, kept: map[string]bool{}}
		o.tasks[task] = s
	}
	change(s)
}

// serveModel answers a request. The answer depends on the conversation alone.
func (o *fakeServers) serveModel(w http.ResponseWriter, r *http.Request) {
	var body struct{ Messages []llm.Message }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	task, round, step := "", 0, 0
	for _, m := range body.Messages {
		switch {
		case m.Role == llm.User && m.Content != "Go on.":
			before, after, _ := strings.Cut(m.Content, " round ")
			task, step = before, 0
			_, _ = fmt.Sscan(after, &round)
		case m.Role == llm.Assistant && len(m.ToolCalls) > 0:
			step++
		}
	}
	index := (round-1)*len(modelCalls()) + step
	o.updateCounts(task, func(s *callCounts) { s.requests[index]++ })
	if o.held != nil {
		o.arrived <- struct{}{}
		<-o.held
	}
	answer := llm.Response{ID: fmt.Sprint("answer-", index), Message: llm.Message{Role: llm.Assistant}, Finish: llm.FinishTools, Usage: llm.Usage{Input: 10, Output: 5}}
	for i, name := range modelCalls()[step] {
		answer.Message.ToolCalls = append(answer.Message.ToolCalls, llm.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", index, i), Type: "function", Function: llm.Function{Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, index)},
		})
	}
	if len(answer.Message.ToolCalls) == 0 {
		answer.Finish, answer.Message.Content = llm.FinishStop, fmt.Sprintf("round %d done", round)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer.Completion()) // the client may have exited
}

// resultOf returns the result of a tool call.
func resultOf(c machineengine.ToolCall) string { return "done " + c.Arguments }

// serveTool executes a call. The idempotent tool executes each key once.
func (o *fakeServers) serveTool(w http.ResponseWriter, r *http.Request) {
	var c machineengine.ToolCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.updateCounts(r.PathValue("task"), func(s *callCounts) {
		s.names[c.Key] = c.Name
		if c.Name != "s__key" || !s.kept[c.Key] {
			s.tools[c.Key]++
		}
		s.kept[c.Key] = true
	})
	_, _ = w.Write([]byte(resultOf(c)))
}

// copyCounts returns a copy of the counts of a run.
func (o *fakeServers) copyCounts(task, id string) (requests map[int]int, tools map[string]int, names map[string]string) {
	o.updateCounts(task, func(s *callCounts) { requests = maps.Clone(s.requests) })
	o.updateCounts(id, func(s *callCounts) { tools, names = maps.Clone(s.tools), maps.Clone(s.names) })
	return requests, tools, names
}

// countTool returns the number of executions of a call.
func (o *fakeServers) countTool(id, key string) (n int) {
	o.updateCounts(id, func(s *callCounts) { n = s.tools[key] })
	return n
}
