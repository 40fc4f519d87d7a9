package cheats

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

const isLinux = runtime.GOOS == "linux"

// formatTable returns the table and its summary in Markdown.
func formatTable(results []*result) string {
	arms := agentArms()
	if i := slices.IndexFunc(results, func(r *result) bool { return len(r.Cheat) > 0 }); i >= 0 {
		arms = nil
		for _, c := range results[i].Cheat {
			arms = append(arms, c.Arm)
		}
	}
	var b strings.Builder
	b.WriteString("| cheat |")
	for _, a := range arms {
		fmt.Fprintf(&b, " %s |", a)
	}
	b.WriteString(" honest twin |\n| --- |" + strings.Repeat(" --- |", len(arms)+1) + "\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s: %s |", r.Name, r.Title)
		if r.Skipped != "" {
			b.WriteString(" skipped: " + r.Skipped + strings.Repeat(" |", len(arms)+1) + "\n")
			continue
		}
		for _, c := range r.Cheat {
			b.WriteString(" " + c.describe() + " |")
		}
		passed := 0
		for _, c := range r.Honest {
			if c.Outcome == accepted && c.Done {
				passed++
			}
		}
		fmt.Fprintf(&b, " %d of %d |\n", passed, len(r.Honest))
	}
	return b.String() + "\n" + formatSummary(results, arms) + formatSuccesses(results)
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

// formatSummary returns the number of successful cheats in each arm.
func formatSummary(results []*result, arms []arm) string {
	var b strings.Builder
	b.WriteString("| | cheats that succeed | refused | recorded as a claim | honest twins that pass |\n| --- | ---: | ---: | ---: | ---: |\n")
	for i, a := range arms {
		count := map[outcome]int{}
		agents, passed := 0, 0
		for _, r := range results {
			if r.Skipped != "" {
				continue
			}
			agents++
			count[r.Cheat[i].Outcome]++
			if r.Honest[i].Outcome == accepted && r.Honest[i].Done {
				passed++
			}
		}
		fmt.Fprintf(&b, "| %s | %d of %d | %d | %d | %d of %d |\n", a, count[accepted], agents, count[refused], count[claimed], passed, agents)
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
