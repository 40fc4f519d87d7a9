package ci

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"github.com/guideway-dev/guideway/internal/cli/app"
)

// headline returns the verdict in a sentence.
func (r *Report) headline() string {
	switch r.Verdict {
	case Passed:
		return "the change meets the policy"
	case Refused:
		return "the change does not meet the policy"
	default:
		return "it could not be decided whether the change meets the policy"
	}
}

// summaryText is the template of the summary. It quotes the texts of the change with code,
// paths and fenced.
//
//go:embed summary.md.tmpl
var summaryText string

var summaryTemplate = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("summary").Funcs(template.FuncMap{
		"sentence": func(r *Report) string { return strings.ToUpper(r.headline()[:1]) + r.headline()[1:] },
		"files":    func(n int) string { return app.Plural(n, "file", "files") },
		"seconds":  func(ms int64) string { return fmt.Sprintf("%.1f", float64(ms)/1000) },
		"join":     strings.Join,
		"short":    short,
		"code":     code,
		"fenced":   fenced,
		"paths":    pathList,
	}).Parse(summaryText))
})

// Markdown returns the summary for a pull request. Texts of the change are quoted, so that
// they can neither format the summary nor mention a person.
func (r *Report) Markdown() string {
	var b strings.Builder
	if err := summaryTemplate().Execute(&b, r); err != nil {
		fmt.Fprintf(&b, "\nThe summary is incomplete: %s\n", code(err.Error()))
	}
	return b.String()
}

// short returns the beginning of a hash.
func short(hash string) string {
	const few = 12
	return hash[:min(few, len(hash))]
}

// pathList returns the first paths of a list.
func pathList(paths []string) string {
	const few = 5
	var list []string
	for _, p := range paths[:min(few, len(paths))] {
		list = append(list, code(p))
	}
	if n := len(paths) - few; n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(list, ", ")
}

// code returns untrusted text as code on one line. Inside of it, Markdown has no effect. A
// vertical bar would end the cell of a table.
func code(text string) string {
	const most = 500
	text = strings.ReplaceAll(app.Truncate(app.OneLine(text), most), "|", "¦")
	fence := strings.Repeat("`", longestRun(text)+1)
	if strings.HasPrefix(text, "`") || strings.HasSuffix(text, "`") || text == "" {
		text = " " + text + " "
	}
	return fence + text + fence
}

// fenced returns untrusted text as a block of code.
func fenced(text string) string {
	fence := strings.Repeat("`", max(3, longestRun(text)+1))
	return fence + "text\n" + strings.TrimRight(app.EscapeText(text), "\n") + "\n" + fence
}

// longestRun returns the length of the longest run of backquotes in a text.
func longestRun(text string) int {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}
