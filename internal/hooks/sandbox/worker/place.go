package worker

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-sourcemap/sourcemap"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// frame matches a line of a stack trace: "at name (file:line:column)".
var frame = regexp.MustCompile(`^\s*at (.*?) ?\((.+):(\d+):(\d+)\)$`)

// placeByStack gives an answer its stack with the user's places, and the place
// of its first frame if it has none. Frames of the engine and of the prelude are
// left out.
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
		user := v.script.find(m[2])
		if user == nil {
			continue
		}
		if _, read := maps[user]; !read {
			maps[user] = readSourceMap(user)
		}
		file, row, column := user.origin(maps[user], atoi(m[3]), atoi(m[4]))
		if a.Line == 0 {
			a.File, a.Line, a.Column = file, row, column
		}
		fmt.Fprintf(&told, "at %s (%s:%d:%d)\n", m[1], file, row, column)
	}
	a.Stack = cut(wholeRunes(strings.TrimSuffix(told.String(), "\n")), maxStack)
}

// placeAt sets an answer's place from a place in the text that the engine had.
func (v *vm) placeAt(a *scriptwire.Answer, file string, line, column int) {
	m := v.script.find(file)
	if m == nil || line == 0 {
		return
	}
	a.File, a.Line, a.Column = m.origin(readSourceMap(m), line, column)
}

// origin gives the place that the user knows: in the source without our head,
// and of that in the file that it was compiled from.
func (m *module) origin(sources *sourcemap.Consumer, line, column int) (string, int, int) {
	line -= m.headLines()
	if last := strings.Count(m.source, "\n") + 1; line > last {
		// At the brace that ends the body: something was not closed before.
		end := m.source[strings.LastIndexByte(m.source, '\n')+1:]
		line, column = last, len([]rune(end))+1
	}
	if sources != nil {
		// The map counts columns from 0.
		if file, _, row, col, ok := sources.Source(line, max(column-1, 0)); ok && row > 0 {
			if file == "" {
				file = m.name
			}
			return cut(file, 200), row, col + 1
		}
	}
	return m.name, max(line, 1), column
}

// mapComment begins the comment that carries a source map.
const mapComment = "//# sourceMappingURL=data:application/json"

// maxSourceMap bounds a source map that is read.
const maxSourceMap = 4 << 20

// readSourceMap reads the map that a source carries in its last such comment;
// nil if it has none that can be read.
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

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}
