package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// The tools that a client with tool search gets instead of the full list.
const (
	toolSearch = "tool_search"
	toolCall   = "tool_call"
)

func lazyNames() []string { return []string{toolSearch, toolCall, resultRead} }

func isLazy(name string) bool { return name == toolSearch || name == toolCall }

// lazyFor reports whether a client gets tool search instead of all tools. The client's
// token determines this, or else the settings.
func (g *Gateway) lazyFor(ctx context.Context) bool {
	if h := auth.TokenLeaseFrom(ctx); h != nil && h.Exposure != "" {
		return h.Exposure == auth.ExposureSearch
	}
	return g.lazy.Load()
}

// lazyTools returns the definitions of tool_search and tool_call.
func lazyTools() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"name":"tool_search","title":"Find tools","description":"Find tools of the connected MCP servers for a task. ` +
			`Returns names, descriptions and input schemas, best match first; call one with tool_call.",` +
			`"inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What you want to do, in a few words; if empty, all tools by name, up to limit"},` +
			`"limit":{"type":"integer","minimum":1,"maximum":50,"description":"Maximum number of tools, default 8"}},"required":["query"]},` +
			`"annotations":{"readOnlyHint":true}}`),
		json.RawMessage(`{"name":"tool_call","title":"Call a found tool","description":"Call a tool that tool_search has found.",` +
			`"inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Name from tool_search"},` +
			`"arguments":{"type":"object","description":"Arguments that fit the tool's input schema"}},"required":["name"]}}`),
	}
}

// lazyCall calls tool_search or tool_call.
func (g *Gateway) lazyCall(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	bad := func(message string) (json.RawMessage, error) {
		return c.finishResult(toolError(guideway.CodeInvalid, message, `call tool_search with {"query": "read a file"}, then tool_call with {"name": "files__read", "arguments": {…}}`))
	}
	arguments := r.Arguments
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	members, err := jsonrpc.Members(arguments, "query", "limit", "name", "arguments")
	if err != nil {
		return bad("the arguments are invalid: " + err.Error())
	}
	if r.Name == toolCall {
		var name string
		if json.Unmarshal(members["name"], &name) != nil || name == "" || isLazy(name) {
			return bad("name must be the name of a tool that tool_search has found")
		}
		inner := members["arguments"]
		if inner != nil && inner[0] != '{' {
			return bad("arguments must be an object")
		}
		r.Name, r.Arguments, r.byModel = name, inner, true
		return g.callTool(ctx, c, r)
	}
	query, limit := "", 8
	if members["query"] != nil && json.Unmarshal(members["query"], &query) != nil {
		return bad("query must be a string")
	}
	if members["limit"] != nil && (json.Unmarshal(members["limit"], &limit) != nil || limit < 1 || limit > 50) {
		return bad("limit must be a whole number from 1 to 50, not " + clipText(string(members["limit"]), maxName))
	}
	tools := slices.DeleteFunc(slices.Clone(g.listedTools(ctx, c)), func(t *tool) bool { return t.uses.appOnly })
	return c.finishResult(searchResult(tools, clipText(query, 1<<10), limit))
}

// searchResult returns the answer of tool_search.
func searchResult(tools []*tool, query string, limit int) json.RawMessage {
	best := rankTools(tools, query)
	total := len(best)
	var list []json.RawMessage
	for _, t := range best[:min(limit, total)] {
		shown := []jsonrpc.Member{{Key: "name", Value: jsonrpc.Text(t.name)}, {Key: "description", Value: jsonrpc.Text(t.description)}}
		_ = jsonrpc.Each(t.shown, func(key string, value json.RawMessage) error {
			if key == "inputSchema" {
				shown = append(shown, jsonrpc.Member{Key: key, Value: value})
			}
			return nil
		})
		list = append(list, jsonrpc.Object(shown...))
	}
	return toolResult(jsonrpc.Object(
		jsonrpc.Member{Key: "tools", Value: jsonrpc.List(list...)},
		jsonrpc.Member{Key: "found", Value: jsonrpc.Number(int64(total))},
		jsonrpc.Member{Key: "of", Value: jsonrpc.Number(int64(len(tools)))}))
}

// The parameters of BM25, and the weight of a word in the name relative to one in the
// description.
const (
	bm25K      = 1.2
	bm25B      = 0.75
	nameWeight = 4
)

// rankTools returns the tools that match a query, best first (BM25 over names and
// descriptions). For a query without words it returns all tools by name.
func rankTools(tools []*tool, query string) []*tool {
	wanted := splitWords(query)
	if len(wanted) == 0 {
		return slices.SortedFunc(slices.Values(tools), func(a, b *tool) int { return strings.Compare(a.name, b.name) })
	}
	counts := make([]map[string]float64, len(tools))
	lengths := make([]float64, len(tools))
	having := map[string]float64{}
	sum := 0.0
	for i, t := range tools {
		counts[i] = map[string]float64{}
		for _, w := range splitWords(t.full) {
			counts[i][w] += nameWeight
		}
		for _, w := range splitWords(t.description) {
			counts[i][w]++
		}
		for w, n := range counts[i] {
			lengths[i] += n
			having[w]++
		}
		sum += lengths[i]
	}
	type scored struct {
		tool  *tool
		score float64
	}
	var best []scored
	average := sum / float64(max(len(tools), 1))
	for i, t := range tools {
		score := 0.0
		for _, w := range wanted {
			n := counts[i][w]
			if n == 0 {
				continue
			}
			rarity := math.Log(1 + (float64(len(tools))-having[w]+0.5)/(having[w]+0.5))
			score += rarity * n * (bm25K + 1) / (n + bm25K*(1-bm25B+bm25B*lengths[i]/average))
		}
		if score > 0 {
			best = append(best, scored{t, score})
		}
	}
	slices.SortStableFunc(best, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.tool.name, b.tool.name))
	})
	return lists.Map(best, func(b scored) *tool { return b.tool })
}

// splitWords splits a text at characters other than letters and digits, and before a
// capital that follows a small letter. It removes the final s of longer words, so that
// plurals match.
func splitWords(text string) []string {
	var out []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			w := strings.ToLower(string(word))
			if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
				w = w[:len(w)-1]
			}
			out = append(out, w)
		}
		word = word[:0]
	}
	lower := false
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end()
			lower = false
			continue
		}
		if unicode.IsUpper(r) && lower {
			end()
		}
		lower = unicode.IsLower(r)
		word = append(word, r)
	}
	end()
	return out
}
