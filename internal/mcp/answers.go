package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
	"weak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The forms of answers. Errors have only text in each form.
const (
	// AnswersAuto sends AnswersText to clients in knownClients, and AnswersBoth to others.
	AnswersAuto = "auto"
	// AnswersText sends the text alone, and tools without an output schema.
	AnswersText = "text"
	// AnswersStructured sends the structured content alone, for programs.
	AnswersStructured = "structured"
	// AnswersBoth sends the text and the structured content.
	AnswersBoth = "both"
)

// answerForms returns the allowed values of Options.Answers.
func answerForms() []string {
	return []string{AnswersAuto, AnswersText, AnswersStructured, AnswersBoth}
}

// knownClient is a client that shows its model the text of an answer without structured
// content. Given both, it shows the structured content or both.
type knownClient struct {
	// name is the name that the client sends. A name that ends with an asterisk is the
	// beginning of a name.
	name string
	// ignoresInstructions is set if the model does not see the server's instructions.
	ignoresInstructions bool
}

// knownClients returns the clients whose programs or public sources were checked.
// docs/adr/0027 lists what each client shows to its model.
func knownClients() []knownClient {
	return []knownClient{
		{name: "claude-code"},
		{name: "codex-mcp-client"},
		{name: "copilot-cli", ignoresInstructions: true},
		{name: "gemini-cli-mcp-client"},
		{name: "qwen-cli-mcp-client*"},
		{name: "opencode"},
		{name: "@cline/core", ignoresInstructions: true},
		{name: "Cline"},
		{name: "continue-cli-client", ignoresInstructions: true},
		{name: "continue-client", ignoresInstructions: true},
		{name: "Visual Studio Code*"},
	}
}

// findClient returns the known client with a name, or nil.
func findClient(info *mcp.Implementation) *knownClient {
	if info == nil {
		return nil
	}
	list := knownClients()
	i := slices.IndexFunc(list, func(c knownClient) bool {
		beginning, open := strings.CutSuffix(c.name, "*")
		return info.Name == c.name || open && strings.HasPrefix(info.Name, beginning)
	})
	if i < 0 {
		return nil
	}
	return &list[i]
}

// responder writes the answers of tools in the form that fits the client.
type responder struct {
	logger *slog.Logger
	// answers is Options.Answers.
	answers string
	// forms seals the forms at gates and the requests to guideway connect. connectChecks is
	// Options.ConnectChecks.
	forms         *formStore
	connectChecks bool
	// introduction is the text for a model that does not see the server's instructions, or
	// "".
	introduction string
	// introduced has the connections whose model has the introduction, as
	// weak.Pointer[mcp.ServerSession].
	introduced sync.Map
}

func newResponder(opts Options, introduction string) (*responder, error) {
	if !slices.Contains(answerForms(), opts.Answers) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "there is no form of answers %q", opts.Answers).
			WithFix("use one of: %s", strings.Join(answerForms(), ", "))
	}
	return &responder{logger: opts.Logger, answers: opts.Answers, introduction: introduction, forms: newForms(opts.Shared, opts.Now), connectChecks: opts.ConnectChecks}, nil
}

// formFor returns the form of the answers to a client.
func (r *responder) formFor(info *mcp.Implementation) string {
	switch {
	case r.answers != AnswersAuto:
		return r.answers
	case findClient(info) != nil:
		return AnswersText
	default:
		return AnswersBoth
	}
}

// wrapHandler is a middleware that removes the output schemas from the list of tools if the
// client gets no structured content: a client rejects answers that lack the content that a
// schema announces.
func (r *responder) wrapHandler(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		asked, ok := req.(*mcp.ListToolsRequest)
		list, isList := result.(*mcp.ListToolsResult)
		if err != nil || !ok || !isList || r.formFor(asked.ClientInfo()) != AnswersText {
			return result, err
		}
		for i, t := range list.Tools {
			copied := *t
			copied.OutputSchema = nil
			list.Tools[i] = &copied
		}
		return list, nil
	}
}

// answer returns the result of a successful call.
func (r *responder) answer(t *tool, req *mcp.CallToolRequest, in arguments, out any) (*mcp.CallToolResult, error) {
	w, err := newTextAnswer(out)
	if err != nil {
		return nil, err
	}
	form := r.formFor(req.ClientInfo())
	if form != AnswersStructured {
		if err := w.selectPage(t, in, out); err != nil {
			return nil, err
		}
		if r.introduces(t, req) {
			w.text += "\n\n" + r.introduction
		}
	}
	return w.encodeResult(form)
}

// introduces reports whether the answer to a request contains the introduction. On a
// connection that is the first answer that is not about a run, because answers about runs
// contain the next call. Without a connection it is each list of workflows.
func (r *responder) introduces(t *tool, req *mcp.CallToolRequest) bool {
	c := findClient(req.ClientInfo())
	ofRun := []string{"workflow_start", "workflow_continue", "workflow_status", "workflow_resume", "workflow_fork", "workflow_abort"}
	if c == nil || !c.ignoresInstructions || r.introduction == "" || slices.Contains(ofRun, t.Name) {
		return false
	}
	if req.Session == nil || req.Session.ID() == "" && req.Extra != nil && req.Extra.Header != nil {
		return t.Name == "workflow_list"
	}
	key := weak.Make(req.Session)
	if _, seen := r.introduced.LoadOrStore(key, true); seen {
		return false
	}
	runtime.AddCleanup(req.Session, func(key weak.Pointer[mcp.ServerSession]) { r.introduced.Delete(key) }, key)
	return true
}

// refuse returns the result of a failed call.
func (r *responder) refuse(ctx context.Context, t *tool, req *mcp.CallToolRequest, err error) *mcp.CallToolResult {
	if refusal, ok := run.AsRefusal(err); ok {
		return r.encodeRefusal(req, refusal)
	}
	return encodeError(t.newCallError(ctx, r.logger, err))
}

// encodeRefusal returns a refusal in words for a client that gets text alone, otherwise in
// JSON.
func (r *responder) encodeRefusal(req *mcp.CallToolRequest, refusal *run.Refusal) *mcp.CallToolResult {
	if r.formFor(req.ClientInfo()) == AnswersText {
		if text, err := refusalText(refusal); err == nil {
			return newErrorResult(text)
		}
	}
	return encodeError(refusal)
}

// maxAnswerBytes bounds the text of an answer without pages: Codex cuts longer ones in the
// middle. pageBytes is the size of a page, which leaves room for the head of the answer.
const (
	maxAnswerBytes = 10_000
	pageBytes      = 8_000
)

// selectPage replaces a long text by the page that a call asks for, with the call for the
// next page.
func (w *textAnswer) selectPage(t *tool, in arguments, out any) error {
	page := in.intArg("page")
	if in["page"] == nil {
		page = 1
	}
	if page == 1 && (len(w.text) <= maxAnswerBytes || t.pageCall(in, out, 2) == nil) {
		return nil
	}
	body := w.body
	if body == "" {
		body = strings.TrimPrefix(w.text, w.head)
	}
	pages := splitPages(body, pageBytes-w.reserve)
	last := int64(len(pages))
	if page < 1 || page > last {
		bad := t.badCall(in, "page", fmt.Sprintf("page must be from 1 to %d", last))
		bad.Next.Arguments["page"] = last
		return bad
	}
	text := strings.TrimSuffix(pages[page-1], "\n")
	if page == 1 {
		text = w.head + text
	} else {
		w.note = ""
	}
	w.text = fmt.Sprintf("%s\n(page %d of %d", text, page, last)
	if page < last {
		next, err := callText(t.pageCall(in, out, page+1))
		if err != nil {
			return err
		}
		w.text += "; for the next page call " + next
	}
	w.text += ")"
	return nil
}

// pageCall returns the call for a page of an answer, or nil if no call repeats the answer.
// The status of a run has the further pages of other answers about the run.
func (t *tool) pageCall(in arguments, out any, page int64) *run.Call {
	call := &run.Call{Tool: t.Name, Arguments: maps.Clone(in)}
	if findParam(t.Params, "page") == nil {
		switch a := out.(type) {
		case runAnswer:
			call = statusCall(a.Handle)
		case *driver.Status:
			call = &run.Call{Tool: "machine_status", Arguments: map[string]any{"runId": a.RunID}}
		default:
			return nil
		}
	}
	call.Arguments["page"] = page
	return call
}

// callText returns a call that can be copied. It does not repeat long arguments.
func callText(c *run.Call) (string, error) {
	const longest = 512
	var b answerText
	if text := b.encodeValue(c.Arguments); len(text) <= longest {
		return c.Tool + " " + text, b.err
	}
	return fmt.Sprintf("%s with the same arguments and page %v", c.Tool, c.Arguments["page"]), b.err
}

// splitPages splits a text into pages of at most limit bytes. A page ends after a line if a
// line ends in its second half, otherwise after a comma or a space.
func splitPages(text string, limit int) []string {
	var pages []string
	for len(text) > limit {
		end := strings.LastIndexByte(text[:limit], '\n') + 1
		if end <= limit/2 {
			end = strings.LastIndexAny(text[:limit], ", ") + 1
		}
		if end <= limit/2 {
			end = limit
		}
		for !utf8.RuneStart(text[end]) {
			end--
		}
		pages, text = append(pages, text[:end]), text[end:]
	}
	return append(pages, text)
}
