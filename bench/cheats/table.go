package cheats

import (
	"fmt"
	"runtime"
	"strings"
)

const isLinux = runtime.GOOS == "linux"

// formatTable returns the table and its summary in Markdown.
func formatTable(results []*result, arms []arm) string {
	var b strings.Builder
	b.WriteString("| cheat |")
	for _, a := range arms {
		fmt.Fprintf(&b, " %s |", a)
	}
	b.WriteString(" honest twin | modeled on |\n| --- |" + strings.Repeat(" --- |", len(arms)+2) + "\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s: %s |", r.Name, r.Title)
		switch {
		case r.Skipped != "":
			b.WriteString(" skipped: " + r.Skipped + strings.Repeat(" |", len(arms)+2) + "\n")
			continue
		case r.Model != nil:
			for _, c := range r.Model {
				b.WriteString(" " + c.describeModel() + " |")
			}
			b.WriteString(" | " + r.Source + " |\n")
			continue
		}
		for _, c := range r.Cheat {
			b.WriteString(" " + c.describe() + " |")
		}
		fmt.Fprintf(&b, " %d of %d | %s |\n", countPassed(r.Honest), len(r.Honest), r.Source)
	}
	return b.String() + "\n" + formatSummary(results, arms) + formatSuccesses(results)
}

// countPassed returns the number of arms in which an honest twin completed its work.
func countPassed(cells []cell) (n int) {
	for _, c := range cells {
		if c.Outcome == accepted && c.Done {
			n++
		}
	}
	return n
}

// describe returns a cell of a cheat: a success in bold.
func (c *cell) describe() string {
	text := string(c.Outcome)
	if c.Outcome == accepted {
		text = "**accepted**"
	}
	if c.Expected == varies {
		text += " (race)"
	}
	if c.Unexpected != "" {
		text += " (!)"
	}
	return text
}

// describeModel returns a cell of a model, which may have done the work.
func (c *cell) describeModel() string {
	switch {
	case c.Unexpected != "":
		return "error"
	case c.Done && c.Outcome == accepted:
		return "done"
	case c.Done:
		return "done, " + string(c.Outcome)
	}
	return c.describe()
}

// formatSummary returns the number of successful cheats in each arm.
func formatSummary(results []*result, arms []arm) string {
	var b strings.Builder
	b.WriteString("| | cheats that succeed | refused | recorded as a claim | honest work that passes |\n| --- | ---: | ---: | ---: | ---: |\n")
	for i, a := range arms {
		count := map[outcome]int{}
		cheats, works, passed := 0, 0, 0
		for _, r := range results {
			if len(r.Cheat) > 0 {
				cheats++
				works++
				count[r.Cheat[i].Outcome]++
				passed += countPassed(r.Honest[i : i+1])
			}
			if len(r.Model) > 0 && r.Model[i].Done {
				works++
				passed += countPassed(r.Model[i : i+1])
			} else if len(r.Model) > 0 {
				cheats++
				count[r.Model[i].Outcome]++
			}
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %d | %d | %d of %d |\n", a, count[accepted], cheats, count[refused], count[claimed], passed, works)
	}
	return b.String()
}

// formatSuccesses lists the cheats that succeed although the workflow has checks, with the
// reason.
func formatSuccesses(results []*result) string {
	var b strings.Builder
	for _, r := range results {
		var where []string
		for _, c := range r.Cheat {
			if c.Outcome == accepted && (c.Arm == checksArm || c.Arm == ciArm) {
				where = append(where, string(c.Arm))
			}
		}
		if len(where) > 0 {
			fmt.Fprintf(&b, "- %s (%s): %s.\n", r.Name, strings.Join(where, ", "), r.Why)
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nCheats that still succeed where the workflow has checks:\n\n" + b.String()
}
