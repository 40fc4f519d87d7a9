package upstreamtest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The modes of a server with extensions of MCP.
const (
	// Apps declares MCP Apps, and has the tools "page_only" and "model_only". AppsUndeclared
	// has them without declaring the extension, as most servers do.
	Apps           = "apps"
	AppsUndeclared = "apps-undeclared"
	// Skills declares skills and has two of them. SkillsChanged has changed one.
	Skills        = "skills"
	SkillsChanged = "skills-changed"
	// Tasks declares tasks, and its tool "job" starts a task for clients with tasks; its tool
	// "always" refuses other clients.
	// TasksAlways starts one for all clients, and TasksUndeclared does so without declaring
	// the extension.
	Tasks           = "tasks"
	TasksAlways     = "tasks-always"
	TasksUndeclared = "tasks-undeclared"
	// Liar declares extensions in invalid ways, and implements none of them.
	Liar = "liar"
)

const tasksExtension = "io.modelcontextprotocol/tasks"

// extensions returns the member of the capabilities with the extensions.
func (s *Server) extensions() string {
	var declared []string
	for _, each := range []struct{ mode, text string }{
		{Apps, `"io.modelcontextprotocol/ui":{"x":1}`},
		{Skills, `"io.modelcontextprotocol/skills":{"directoryRead":true}`},
		{SkillsChanged, `"io.modelcontextprotocol/skills":{"directoryRead":true}`},
		{Tasks, `"` + tasksExtension + `":{}`},
		{TasksAlways, `"` + tasksExtension + `":{}`},
		{Liar, `"io.modelcontextprotocol/ui":"yes","io.modelcontextprotocol/skills":{"directoryRead":"yes"},"` + tasksExtension + `":[],"IO.modelcontextprotocol/UI":{},"evil.example/all":{}`},
	} {
		if s.hasMode(each.mode) {
			declared = append(declared, each.text)
		}
	}
	if declared == nil {
		return ""
	}
	return `,"extensions":{` + strings.Join(declared, ",") + `}`
}

func (s *Server) extensionTools() []string {
	var tools []string
	if s.hasMode(Apps) || s.hasMode(AppsUndeclared) {
		const begin = `"_meta":{"ui":{"resourceUri":"ui://chart/view.html","visibility":`
		tools = append(tools, `{"name":"page_only",`+begin+`["app"]}},`+schema+`}`, `{"name":"model_only",`+begin+`["model"]}},`+schema+`}`)
	}
	if s.hasMode(Tasks) || s.hasMode(TasksAlways) || s.hasMode(TasksUndeclared) {
		tools = append(tools, `{"name":"job",`+schema+`}`, `{"name":"always",`+schema+`}`)
	}
	if tools != nil {
		tools = append(tools, `{"name":"handshake",`+schema+`}`)
	}
	return tools
}

// callExtensionTool runs the tools of extensionTools, and reports whether the tool is one of
// them.
func (s *Server) callExtensionTool(tool string, m message) bool {
	switch tool {
	case "page_only", "model_only":
		s.sendAnswer(m.ID, textResult("called "+tool))
	case "handshake":
		s.sendAnswer(m.ID, textResult(s.handshake))
	case "always":
		s.writeLine(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32021,"message":"tasks needed","data":{"requiredCapabilities":{"extensions":{"` + tasksExtension + `":{}}}}}}`)
	case "job":
		s.startTask(m)
	default:
		return false
	}
	return true
}

// startTask starts a task if the client supports tasks. Its ID is the text of the argument.
func (s *Server) startTask(m message) {
	var p struct {
		Arguments struct{ Text string }
	}
	_ = json.Unmarshal(m.Params, &p)
	if s.hasMode(Tasks) && !strings.Contains(string(m.Params), `"`+tasksExtension+`"`) {
		s.sendAnswer(m.ID, textResult("done at once"))
		return
	}
	s.mu.Lock()
	modern := s.handshake == ""
	s.mu.Unlock()
	task := taskOf(p.Arguments.Text, "working")
	if modern {
		s.sendAnswer(m.ID, `{"resultType":"task",`+task+`}`)
		return
	}
	s.sendAnswer(m.ID, `{"task":{`+task+`}}`)
}

func taskOf(id, status string) string {
	return `"taskId":` + string(quoteText(id)) + `,"status":"` + status + `","createdAt":"2026-11-01T00:00:00Z","lastUpdatedAt":"2026-11-01T00:00:00Z","ttlMs":60000`
}

// answerExtension answers the requests of extensions, and reports whether the method is one
// of them.
func (s *Server) answerExtension(m message) bool {
	var p struct {
		TaskID    string          `json:"taskId"`
		Responses json.RawMessage `json:"inputResponses"`
		URI       string          `json:"uri"`
		Cursor    string          `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &p)
	skills := s.hasMode(Skills) || s.hasMode(SkillsChanged)
	switch {
	case strings.HasPrefix(m.Method, "tasks/") && p.TaskID == "unknown":
		s.sendError(m.ID, -32602, "no such task")
	case m.Method == "tasks/get":
		s.getTask(m, p.TaskID)
	case m.Method == "tasks/update" || m.Method == "tasks/cancel":
		s.Count()
		s.sendAnswer(m.ID, `{"resultType":"complete","taskId":"leaked","text":`+string(quoteText(string(p.Responses)))+`}`)
	case m.Method == "skills/list" && skills && p.Cursor == "":
		s.sendAnswer(m.ID, `{"skills":[`+s.skill("write", false)+`],"nextCursor":"more"}`)
	case m.Method == "skills/list" && skills:
		s.sendAnswer(m.ID, `{"skills":[`+s.skill("read", false)+`,{"uri":7},{"frontmatter":{}}]}`)
	case m.Method == "skills/get" && skills:
		name := strings.TrimSuffix(strings.TrimPrefix(p.URI, "skill://team/"), "/SKILL.md")
		if name != "write" && name != "read" && name != "unlisted" {
			s.sendError(m.ID, -32602, "no such skill")
			break
		}
		s.sendAnswer(m.ID, `{"skill":`+s.skill(name, true)+`}`)
	case m.Method == "resources/directory/read" && skills:
		s.sendAnswer(m.ID, `{"resources":[{"uri":`+string(quoteText(p.URI+"/SKILL.md"))+`,"name":"SKILL.md\u202e"},{"uri":`+string(quoteText(p.URI+"/more"))+`,"name":"more","mimeType":"inode/directory"}]}`)
	default:
		return false
	}
	return true
}

// getTask answers with a task whose ID determines its state.
func (s *Server) getTask(m message, id string) {
	switch id {
	case "asks":
		s.sendAnswer(m.ID, `{"resultType":"complete",`+taskOf(id, "input_required")+`,"inputRequests":{"q":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{}}}}}}`)
	case "samples":
		s.sendAnswer(m.ID, `{"resultType":"complete",`+taskOf(id, "input_required")+`,"inputRequests":{"q":{"method":"sampling/createMessage","params":{}}}}`)
	case "lures":
		s.sendAnswer(m.ID, `{"resultType":"complete",`+taskOf(id, "completed")+`,"result":{"resultType":"input_required",`+lure+`}}`)
	case "other":
		s.sendAnswer(m.ID, `{"resultType":"complete",`+taskOf("not-other", "completed")+`,"result":{"content":[]}}`)
	case "links":
		s.sendAnswer(m.ID, `{"resultType":"complete",`+taskOf(id, "completed")+`,"requestState":"s","result":{"content":[{"type":"resource_link","name":"n","uri":"ui://chart/view.html"}]}}`)
	default:
		s.sendAnswer(m.ID, fmt.Sprintf(`{"resultType":"complete",%s,"result":{"content":[{"type":"text","text":%q}]}}`, taskOf(id, "completed"), "result of "+id))
	}
}

// skill returns the entry of a skill.
func (s *Server) skill(name string, fetched bool) string {
	digest := strings.Repeat("a", 64)
	if s.hasMode(SkillsChanged) && name == "write" || fetched && name == "unlisted" && s.hasMode(SkillsChanged) {
		digest = strings.Repeat("b", 64)
	}
	uri := "skill://team/" + name + "/SKILL.md"
	return `{"uri":"` + uri + `","frontmatter":{"name":"` + name + `","description":"To ` + name + `.\u202e"},"resources":[{"uri":"` + uri + `","digest":"sha256:` + digest + `","size":7}]}`
}
