package checksfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/rogpeppe/go-internal/diff"
)

// keptBytes is the maximum size of a file whose content an approval keeps.
const keptBytes = 32 << 10

// DefaultTimeout is the time limit of a check without one.
const DefaultTimeout = "10m"

// Text describes the check for the person who approves it: the command with its settings,
// and the content of the files that define it. Hidden characters are escaped. The content
// of a file larger than most is left out; if most is zero, there is no limit.
func (s *Subject) Text(most int64) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-13s %s\n", name+":", visible.EscapeScript(fmt.Sprintf(format, args...)))
	}
	switch s.Rule.Type {
	case criteria.HTTP:
		line("address", "%s", s.Rule.URL)
		line("effect", "rules of workflows may send GET requests to this loopback address")
	case criteria.Tool:
		line("tool", "%s", s.Rule.Tool)
		if len(s.Rule.Arguments) > 0 {
			line("arguments", "%s", toJSON(s.Rule.Arguments))
		}
	case criteria.Protect:
		if s.Description != "" {
			line("description", "%s", s.Description)
		}
		line("protects", "%s", toJSON(s.Rule.Paths))
		if s.Rule.AllowNew {
			line("new files", "allowed")
		}
	default:
		s.writeCommand(line)
	}
	for i := range s.Files {
		s.Files[i].write(&b, most)
	}
	return b.String()
}

// writeCommand writes the command and its settings.
func (s *Subject) writeCommand(line func(name, format string, args ...any)) {
	r := s.Rule
	if s.Description != "" {
		line("description", "%s", s.Description)
	}
	line("command", "%s", toJSON(r.Argv))
	line("directory", "%s", cmp.Or(r.Dir, "."))
	if len(r.Env) > 0 {
		line("environment", "%s", strings.Join(r.Env, ", "))
	}
	line("time limit", "%s", cmp.Or(r.Timeout, DefaultTimeout))
	if r.ExitCode != nil {
		line("exit code", "%d", *r.ExitCode)
	}
	if r.Matches != "" {
		line("matches", "%s", r.Matches)
	}
	if r.Excludes != "" {
		line("excludes", "%s", r.Excludes)
	}
	if s.Check == nil {
		return
	}
	for i := range s.Check.Parameters {
		p := &s.Check.Parameters[i]
		words := "required"
		if p.Default != nil {
			words = "default " + toJSON(*p.Default)
		}
		if p.Pattern != "" {
			words += ", pattern " + p.Pattern
		}
		line("parameter", "%s: %s", p.Name, words)
	}
	if s.Check.CacheTree {
		line("cache", "a result is reused while the files are the same")
	}
	switch {
	case s.Check.Sandbox && s.Check.Network:
		line("sandbox", "writes only to the workspace and caches; the network is allowed")
	case s.Check.Sandbox:
		line("sandbox", "writes only to the workspace and caches; no network")
	}
}

// write writes the file with its content.
func (f *DefiningFile) write(b *strings.Builder, most int64) {
	fmt.Fprintf(b, "file:         %s", visible.EscapeLine(f.Path))
	switch {
	case f.Hash == "":
		b.WriteString(" (does not exist)\n")
		return
	case f.Link != "":
		fmt.Fprintf(b, " (a link to %s, which is outside the workspace)\n", visible.EscapeLine(f.Link))
		return
	}
	fmt.Fprintf(b, " (sha256 %s)\n", f.Hash[:16])
	if f.Left != "" {
		fmt.Fprintf(b, "  without %s\n", f.Left)
	}
	switch {
	case f.Text == "" && f.Bytes > 0:
		fmt.Fprintf(b, "  %d bytes that are not text\n", f.Bytes)
	case f.isLeftOut(most):
		fmt.Fprintf(b, "  %d bytes of text\n", f.Bytes)
	default:
		for line := range strings.SplitSeq(strings.TrimSuffix(visible.EscapeScript(f.Text), "\n"), "\n") {
			b.WriteString("  | " + line + "\n")
		}
	}
}

// isLeftOut reports whether Text leaves out the content of the file.
func (f *DefiningFile) isLeftOut(most int64) bool { return most > 0 && f.Bytes > most }

// toJSON returns a value as JSON, so that the ends of each argument are visible.
func toJSON(value any) string {
	text, err := jsontext.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// Review returns the text for the person who approves: the whole text, or the differences
// from an earlier approval and the content of large files, which the approval did not keep.
func (s *Subject) Review(approved approval.Records) (text string, isDiff bool) {
	r := approved.Find(s.Key())
	var scope approvedScope
	if r == nil || json.Unmarshal(r.Scope, &scope) != nil || scope.Text == "" {
		return s.Text(0), false
	}
	_, changes, _ := bytes.Cut(diff.Diff("approved", []byte(scope.Text), "now", []byte(s.Text(keptBytes))), []byte("\n"))
	if len(changes) == 0 { // the change has no effect on the command
		return s.Text(0), false
	}
	b := strings.Builder{}
	b.Write(changes)
	for i := range s.Files {
		if f := &s.Files[i]; f.isLeftOut(keptBytes) && !strings.Contains(scope.Text, f.Hash[:16]) {
			f.write(&b, 0)
		}
	}
	return b.String(), true
}
