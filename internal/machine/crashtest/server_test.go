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

// outside is what workers call: a model and tools, which count what they are asked
// and outlive every worker.
type outside struct {
	*httptest.Server

	mu    sync.Mutex
	tasks map[string]*seen
}

// seen is what was asked for one run.
type seen struct {
	// requests counts them by their place in the run, from 0.
	requests map[int]int
	// tools counts executions by the key of the call, names says of which tool.
	tools map[string]int
	names map[string]string
	// kept are the results of calls by their key, of the tool that knows it.
	kept map[string]bool
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{tasks: map[string]*seen{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", o.complete)
	mux.HandleFunc("POST /tool/{task}", o.tool)
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// in finds the counts of a task and has them changed. The model knows a run by its
// task, the tools by its id.
func (o *outside) in(task string, change func(*seen)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.tasks[task]
	if s == nil {
		s = &seen{requests: map[int]int{}, tools: map[string]int{}, names: map[string]string{}, kept: map[string]bool{}}
		o.tasks[task] = s
	}
	change(s)
}

// complete answers a request: what it wants follows from what it was told.
func (o *outside) complete(w http.ResponseWriter, r *http.Request) {
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
	index := (round-1)*len(rounds()) + step
	o.in(task, func(s *seen) { s.requests[index]++ })
	answer := llm.Response{ID: fmt.Sprint("answer-", index), Message: llm.Message{Role: llm.Assistant}, Finish: llm.FinishTools, Usage: llm.Usage{Input: 10, Output: 5}}
	for i, name := range rounds()[step] {
		answer.Message.ToolCalls = append(answer.Message.ToolCalls, llm.ToolCall{
			ID: fmt.Sprintf("call_%d_%d", index, i), Type: "function", Function: llm.Function{Name: name, Arguments: fmt.Sprintf(`{"n":%d}`, index)},
		})
	}
	if len(answer.Message.ToolCalls) == 0 {
		answer.Finish, answer.Message.Content = llm.FinishStop, fmt.Sprintf("round %d done", round)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer.Completion()) // who has gone needs none
}

// resultOf is what a tool answers.
func resultOf(c machineengine.ToolCall) string { return "done " + c.Arguments }

// tool carries a call out. The tool that knows its key does so once.
func (o *outside) tool(w http.ResponseWriter, r *http.Request) {
	var c machineengine.ToolCall
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o.in(r.PathValue("task"), func(s *seen) {
		s.names[c.Key] = c.Name
		if c.Name != "s__key" || !s.kept[c.Key] {
			s.tools[c.Key]++
		}
		s.kept[c.Key] = true
	})
	_, _ = w.Write([]byte(resultOf(c)))
}

// of gives a copy of what a run's model and tools were asked.
func (o *outside) of(task, id string) (requests map[int]int, tools map[string]int, names map[string]string) {
	o.in(task, func(s *seen) { requests = maps.Clone(s.requests) })
	o.in(id, func(s *seen) { tools, names = maps.Clone(s.tools), maps.Clone(s.names) })
	return requests, tools, names
}

// ran says how often a call of a run was carried out.
func (o *outside) ran(id, key string) (n int) {
	o.in(id, func(s *seen) { n = s.tools[key] })
	return n
}
