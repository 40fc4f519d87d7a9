package worker

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sourcemap/sourcemap"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
)

// frame matches a line of a stack trace: "at name (file:line:column)".
var frame = regexp.MustCompile(`^\s*at (.*?) ?\((.+):(\d+):(\d+)\)$`)

// placeByStack sets the stack of an answer with the user's positions, and the position of
// its first frame if it has none. It omits frames of the engine and of the prelude.
func (v *vm) placeByStack(a *scriptwire.Answer, stack string) {
	maps := map[*module]*sourcemap.Consumer{}
	var told strings.Builder
	for line := range strings.Lines(stack) {
		if told.Len() > maxStack {
			break
		}
		m := frame.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			continue
		}
		user := v.script.findModule(m[2])
		if user == nil {
			continue
		}
		if _, read := maps[user]; !read {
			maps[user] = readSourceMap(user)
		}
		file, row, column := user.originOf(maps[user], parseInt(m[3]), parseInt(m[4]))
		if a.Line == 0 {
			a.File, a.Line, a.Column = file, row, column
		}
		fmt.Fprintf(&told, "at %s (%s:%d:%d)\n", m[1], file, row, column)
	}
	a.Stack = cutText(wholeRunes(strings.TrimSuffix(told.String(), "\n")), maxStack)
}

// placeAt sets the position of an answer from a position in the text that the engine
// parsed.
func (v *vm) placeAt(a *scriptwire.Answer, file string, line, column int) {
	m := v.script.findModule(file)
	if m == nil || line == 0 {
		return
	}
	a.File, a.Line, a.Column = m.originOf(readSourceMap(m), line, column)
}

// originOf returns the user's position: in the source without the added head, or in the file
// that it was compiled from.
func (m *module) originOf(sources *sourcemap.Consumer, line, column int) (string, int, int) {
	line -= m.headLines()
	if last := strings.Count(m.source, "\n") + 1; line > last {
		// The error is at the brace that ends the body: a bracket in the body was not
		// closed.
		end := m.source[strings.LastIndexByte(m.source, '\n')+1:]
		line, column = last, len([]rune(end))+1
	}
	if sources != nil {
		// The map counts columns from 0.
		if file, _, row, col, ok := sources.Source(line, max(column-1, 0)); ok && row > 0 {
			if file == "" {
				file = m.name
			}
			return cutText(file, 200), row, col + 1
		}
	}
	return m.name, max(line, 1), column
}

// mapComment starts the comment that contains a source map.
const mapComment = "//# sourceMappingURL=data:application/json"

// maxSourceMap is the maximum size of an encoded source map in bytes.
const maxSourceMap = 4 << 20

// readSourceMap decodes the source map in the last such comment of a source; nil if there
// is no valid map.
func readSourceMap(m *module) *sourcemap.Consumer {
	at := strings.LastIndex(m.source, mapComment)
	if at < 0 {
		return nil
	}
	line, _, _ := strings.Cut(m.source[at+len(mapComment):], "\n")
	_, data, found := strings.Cut(line, "base64,")
	if !found || len(data) > maxSourceMap {
		return nil
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(data))
	if err != nil {
		return nil
	}
	consumer, err := sourcemap.Parse("", decoded)
	if err != nil {
		return nil
	}
	return consumer
}

func parseInt(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
