package ci

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence/attest"
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

// Markdown returns the summary for a pull request. Texts of the change are quoted, so that
// they can neither format the summary nor mention a person.
func (r *Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "## Guideway: %s\n\n%s.\n", r.Verdict, strings.ToUpper(r.headline()[:1])+r.headline()[1:])
	if r.Head != "" {
		fmt.Fprintf(&b, "`%s` changes %s since its merge base with `%s`, apart from attestations.\n", short(r.Head), app.Plural(r.Changed, "file", "files"), short(r.Base))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "\n- **Undecided**: %s%s\n", code(p.Message), fixText(p.Fix))
	}
	r.writeNeeds(&b)
	r.writeChecks(&b)
	r.writeAttestations(&b)
	if len(r.Unmatched) > 0 {
		fmt.Fprintf(&b, "\nNo rule of the policy matches %s.\n", pathList(r.Unmatched))
	}
	return b.String()
}

func (r *Report) writeNeeds(b *strings.Builder) {
	if len(r.Needs) == 0 {
		return
	}
	b.WriteString("\n### Required workflows\n\n| Changed files | Workflow | Result |\n|---|---|---|\n")
	for _, n := range r.Needs {
		result := "nothing is required"
		switch {
		case len(n.Refusals) > 0:
			result = "**refused**"
		case n.Attestation != "":
			result = "attested by " + code(n.Attestation)
		case n.Workflow != "":
			result = "not decided"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", pathList(n.Paths), codeOr(n.Workflow, "-"), result)
	}
	for _, n := range r.Needs {
		writeRefusals(b, n.Refusals)
	}
}

func writeRefusals(b *strings.Builder, refusals []*attest.Refusal) {
	for _, refusal := range refusals {
		fmt.Fprintf(b, "\n- **%s**: %s%s\n", refusal.Reason, code(refusal.Message), fixText(refusal.Fix))
	}
}

func (r *Report) writeChecks(b *strings.Builder) {
	if len(r.Checks) == 0 {
		return
	}
	b.WriteString("\n### Checks\n\n| Check | Result | Time | Command |\n|---|---|---|---|\n")
	for _, c := range r.Checks {
		result := string(c.State) + ", executed again on a clean checkout"
		switch c.State {
		case StateTrusted:
			result = "passed on the trusted host " + code(c.Host)
		case StateUnknown:
			result = "no result"
		case StateFailed:
			result = "**failed** on a clean checkout"
		}
		fmt.Fprintf(b, "| %s | %s | %.1f s | %s |\n", code(c.Name), result, float64(c.DurationMS)/1000, codeOr(strings.Join(c.Argv, " "), "-"))
	}
	for _, c := range r.Checks {
		if len(c.Replaced) > 0 {
			fmt.Fprintf(b, "\nThe change edits files that define the check %s: %s. The check was executed with those of the base.\n", code(c.Name), pathList(c.Replaced))
		}
		if c.State != StateFailed {
			continue
		}
		fmt.Fprintf(b, "\n%s: %s\n", code(c.Name), code(c.Message))
		if c.Output != "" {
			fence := strings.Repeat("`", max(3, longestRun(c.Output)+1))
			fmt.Fprintf(b, "\n<details><summary>The end of the output</summary>\n\n%stext\n%s\n%s\n\n</details>\n", fence, strings.TrimRight(app.EscapeText(c.Output), "\n"), fence)
		}
	}
}

func (r *Report) writeAttestations(b *strings.Builder) {
	for _, a := range r.Attestations {
		fmt.Fprintf(b, "\n### Attestation %s\n\n", code(a.File))
		if a.statement == nil {
			b.WriteString("**Not used.**\n")
			writeRefusals(b, a.Refusals)
			continue
		}
		p := &a.statement.Predicate
		fmt.Fprintf(b, "Run %s of %s, signed by the key %s.\n", code(p.Run.ID), code(p.Workflow.ID+" "+p.Workflow.Version), code(short(a.Keys[0])))
		writeRefusals(b, a.Refusals)
		b.WriteString("\n| Step | Label | Checks |\n|---|---|---|\n")
		for i := range p.Steps {
			step := &p.Steps[i]
			var checks []string
			for j := range step.Checks {
				checks = append(checks, code(step.Checks[j].Summary()))
			}
			fmt.Fprintf(b, "| %s | %s | %s |\n", code(step.ID), step.Label, strings.Join(checks, ", "))
		}
		for _, approval := range p.Approvals {
			fmt.Fprintf(b, "\nGate %s: %s by %s via %s.\n", code(approval.Gate), code(approval.Option), codeOr(approval.By, "an unknown user"), code(approval.Via))
		}
	}
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

func fixText(fix string) string {
	if fix == "" {
		return ""
	}
	return "<br>Fix: " + code(fix)
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

func codeOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return code(text)
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
