//go:build unix

package clients

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// mostSearches bounds the searches for tools. A client that connects to its servers in the
// background finds nothing before they are connected.
const mostSearches = 20

// task is the beginning of the prompt of a subagent.
const task = "This is a task of a part."

// step is a move of the scripted model. It calls a tool, or ends its turn with a text.
type step struct {
	name string
	// tool is a part of the tool's name, because each client has its own prefix.
	tool string
	// arguments is JSON. HANDLE and RUN are the last ones that the model received.
	arguments string
	// say is the text that ends the turn. The client's next request has the reason why it
	// did not end.
	say string
	// before runs before the model answers.
	before func()
	// spawns reports that the tool starts a subagent, to which the next steps belong. It ends
	// when the client sends the result of the tool.
	spawns bool
}

// model is a language model that follows a script.
type model struct {
	t      *testing.T
	url    string
	script []step
	// dir receives the requests of the client, and in the file step the name of the step.
	dir string

	mu sync.Mutex
	// at is the index of the current step. sent is its call, if it was sent.
	at   int
	sent *call
	// asked is the number of texts of the user when the current step was sent.
	asked int
	// spawned is the call that started a subagent, until its result is there.
	spawned string
	// seen are the texts that the model received, by the name of the step.
	seen map[string]string
	// loaded are the full names of the deferred tools that the model has searched for.
	loaded map[string]string
	// searches counts the calls of the client's tool that searches for tools.
	searches int
	requests int
	// body is the last request of the conversation.
	body string
	// instructed reports whether a request had the instructions of Guideway.
	instructed bool
	// offered are the names of the tools that the client offered, unknown are the paths of
	// requests to no known API.
	offered []string
	unknown []string
}

// request is a request to the model, in any of the APIs.
type request struct {
	// instructions are the texts of the system. user are the texts of the user.
	instructions string
	user         []string
	tools        []tool
	// results are the texts of results by the id of the call.
	results map[string]string
	body    string
	stream  bool
}

type tool struct {
	namespace, name string
	// deferred reports whether the model must search for the tool before it calls it.
	deferred bool
}

// call is a call of a tool by the model.
type call struct {
	id, namespace, name string
	arguments           json.RawMessage
}

// reply is a call, or a text that ends the turn.
type reply struct {
	number int
	call   *call
	text   string
}

// protocol is an API of language models.
type protocol interface {
	// read parses a request.
	read(body []byte) (request, error)
	// write sends a reply as a stream or as one object.
	write(w io.Writer, stream bool, r reply) error
}

// newModel starts a model that follows the script.
func newModel(t *testing.T, dir string, script []step) *model {
	t.Helper()
	m := &model{t: t, script: script, dir: dir, seen: map[string]string{}, loaded: map[string]string{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// protocolOf returns the API of a path, or nil.
func protocolOf(path string) protocol {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic{}
	case strings.HasSuffix(path, "/responses"):
		return responses{}
	case strings.HasSuffix(path, "/chat/completions"):
		return completions{}
	case strings.Contains(path, ":streamGenerateContent"), strings.Contains(path, ":generateContent"):
		return gemini{streamed: strings.Contains(path, ":stream")}
	default:
		return nil
	}
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	p := protocolOf(r.URL.Path)
	if err != nil || p == nil || r.Method != http.MethodPost {
		m.mu.Lock()
		m.unknown = append(m.unknown, r.Method+" "+r.URL.Path)
		m.mu.Unlock()
		http.NotFound(w, r)
		return
	}
	asked, err := p.read(body)
	if err != nil {
		m.t.Errorf("the model cannot read a request: %v: %.2000s", err, body)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	asked.body = string(body)
	answer := m.answer(asked)
	w.Header().Set("Content-Type", "application/json")
	if asked.stream {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	if err := p.write(w, asked.stream, answer); err != nil {
		m.t.Logf("the client has closed the answer of the model: %v", err)
	}
}

// answer returns the next move of the script. A request without tools is not part of the
// conversation: clients ask for titles and summaries.
func (m *model) answer(r request) reply {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests++
	m.keep(r.body)
	if !m.converses(r) {
		return reply{number: m.requests, text: "Upload"}
	}
	for _, t := range r.tools {
		m.offered = append(m.offered, t.name)
	}
	m.instructed = m.instructed || strings.Contains(r.body, "Guideway leads you")
	m.receive(r)
	m.body = r.body
	if m.at >= len(m.script) {
		return reply{number: m.requests, text: "The work is done."}
	}
	next := m.script[m.at]
	m.asked = len(r.user)
	if err := os.WriteFile(filepath.Join(m.dir, "step"), []byte(next.name), 0o600); err != nil {
		m.t.Error(err)
	}
	if next.tool == "" {
		m.sent = &call{}
		return reply{number: m.requests, text: next.say}
	}
	if m.sent == nil {
		m.sent = m.find(r, next)
	}
	if m.sent == nil {
		m.t.Errorf("the client offers no tool %s; it offers %v", next.tool, r.tools)
		m.at = len(m.script)
		return reply{number: m.requests, text: "There is no tool " + next.tool}
	}
	return reply{number: m.requests, call: m.sent}
}

// converses reports whether a request is part of the conversation: it offers a tool of the
// script, or a tool that searches for it.
func (m *model) converses(r request) bool {
	for _, t := range r.tools {
		if name := strings.ToLower(t.name); name == "toolsearch" || name == "tool_search" {
			return true
		}
		for _, s := range m.script {
			if s.tool != "" && strings.Contains(t.name, s.tool) {
				return true
			}
		}
	}
	return false
}

// receive records the result of the current step, and goes to the next one. A client that
// repeats a request has no result yet, and gets the same call again.
func (m *model) receive(r request) {
	if m.sent == nil {
		return
	}
	text, ok := r.results[m.sent.id]
	spawned, ended := r.results[m.spawned]
	switch {
	case m.sent.id == "" && ended: // the subagent ended its turn
		text, m.spawned = spawned, ""
		clear(m.loaded)
	case m.sent.id == "": // the model ended its turn
		if len(r.user) <= m.asked {
			return
		}
		text = strings.Join(r.user[m.asked:], "\n")
	case !ok && m.script[m.at].spawns && m.spawned == "" && strings.Contains(strings.Join(r.user, "\n"), task):
		m.spawned = m.sent.id
	case !ok:
		return
	case strings.HasPrefix(m.sent.id, "search"):
		m.sent = nil
		return
	}
	m.seen[m.script[m.at].name] = text
	m.sent = nil
	m.at++
	if m.at < len(m.script) && m.script[m.at].before != nil {
		m.script[m.at].before()
	}
}

// find returns the call of a step: of its tool, or of the client's tool that searches for
// it.
func (m *model) find(r request, s step) *call {
	arguments := strings.NewReplacer("HANDLE", m.last(`h_[0-9A-Za-z]+`), "RUN", m.last(`r_[0-9a-z]{23}`)).Replace(s.arguments)
	id := fmt.Sprintf("call_%02d_%d", m.at, m.requests)
	for _, fits := range []func(name, part string) bool{func(name, part string) bool { return name == part }, strings.Contains} {
		for _, t := range r.tools {
			if fits(t.name, s.tool) && (!t.deferred || m.loaded[s.tool] != "") {
				return &call{id: id, namespace: t.namespace, name: t.name, arguments: json.RawMessage(arguments)}
			}
		}
	}
	if full := m.loaded[s.tool]; full != "" && r.hasTool("tool_call") {
		// Qwen Code calls a deferred tool by another tool.
		text, err := json.Marshal(map[string]any{"name": full, "arguments": json.RawMessage(arguments)})
		if err != nil {
			panic(err) // the arguments of the script are valid JSON
		}
		return &call{id: id, name: "tool_call", arguments: text}
	}
	return m.search(r, s)
}

// search returns the call of the client's tool that searches for tools, or nil.
func (m *model) search(r request, s step) *call {
	for _, t := range r.tools {
		if name := strings.ToLower(t.name); name != "toolsearch" && name != "tool_search" {
			continue
		}
		if m.loaded[s.tool] != "" || m.searches == mostSearches {
			return nil
		}
		m.searches++
		words := "select:" + strings.Join(m.namesIn(r.body), ",")
		if m.loaded[s.tool] == "" {
			words = s.tool // the client has not yet received the tools of the server
		}
		query, err := json.Marshal(map[string]any{"query": words, "max_results": 10})
		if err != nil {
			panic(err) // texts are always valid JSON
		}
		return &call{id: fmt.Sprintf("search%d", m.searches), name: t.name, arguments: query}
	}
	return nil
}

// namesIn returns the full names of the tools that the script calls, and marks them as
// loaded. A client lists the names of deferred tools in the instructions.
func (m *model) namesIn(body string) []string {
	var names []string
	for _, s := range m.script {
		if s.tool == "" || m.loaded[s.tool] != "" {
			continue
		}
		if name := regexp.MustCompile(`[a-zA-Z][\w-]*_` + s.tool + `\w*`).FindString(strings.ReplaceAll(body, `\n`, " ")); name != "" {
			m.loaded[s.tool] = name
			names = append(names, name)
		}
	}
	return names
}

// last returns the last match in the texts that the model received.
func (m *model) last(pattern string) string {
	var found string
	for _, s := range m.script[:m.at] {
		if all := regexp.MustCompile(pattern).FindAllString(m.seen[s.name], -1); all != nil {
			found = all[len(all)-1]
		}
	}
	return found
}

// text returns what the model received for a step.
func (m *model) text(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[name]
}

// keep stores a request for the diagnosis of a failed test.
func (m *model) keep(body string) {
	if err := os.WriteFile(filepath.Join(m.dir, fmt.Sprintf("request-%02d.json", m.requests)), []byte(body), 0o600); err != nil {
		m.t.Error(err)
	}
}

func (r request) hasTool(name string) bool {
	return slices.ContainsFunc(r.tools, func(t tool) bool { return t.name == name })
}

// textOf returns the text of a content, which is a text or a list of blocks.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var blocks []struct {
		Text string `json:"text"`
		Name string `json:"tool_name"`
	}
	if json.Unmarshal(content, &blocks) != nil {
		return string(content)
	}
	for _, b := range blocks {
		text += b.Text + b.Name
	}
	return text
}

// writeEvent writes an event of a stream. Its type is the member type of the data.
func writeEvent(w io.Writer, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	var named struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(text, &named) == nil && named.Type != "" {
		if _, err := fmt.Fprintf(w, "event: %s\n", named.Type); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", text)
	return err
}
