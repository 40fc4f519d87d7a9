package install

import (
	"fmt"
	"strings"
)

const (
	diffContext = 3
	// maxDiffCells is the maximum size of the comparison table. For larger texts, the whole
	// middle is shown as replaced.
	maxDiffCells = 4 << 20
)

// Diff returns the unified diff of a change, or "" if nothing changes.
func Diff(c Change) string {
	if !c.Changes() {
		return ""
	}
	from, to := c.Path, c.Path
	if !c.Existed {
		from = "/dev/null"
	}
	if c.Delete {
		to = "/dev/null"
	}
	return "--- " + from + "\n+++ " + to + "\n" + formatHunks(splitLines(c.Before), splitLines(c.After))
}

func splitLines(b []byte) []string {
	lines := strings.SplitAfter(string(b), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// diffLine is a line with ' ', '-' or '+' and its number on both sides.
type diffLine struct {
	op   byte
	text string
	a, b int
}

// compareLines aligns two texts by their longest common subsequence.
func compareLines(a, b []string) []diffLine {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var out []diffLine
	for i := range head {
		out = append(out, diffLine{' ', a[i], i, i})
	}
	out = append(out, compareMiddle(a[head:len(a)-tail], b[head:len(b)-tail], head)...)
	for i := range tail {
		x, y := len(a)-tail+i, len(b)-tail+i
		out = append(out, diffLine{' ', a[x], x, y})
	}
	return out
}

func compareMiddle(a, b []string, head int) []diffLine {
	common := make([][]int32, 0, len(a)+1)
	if (len(a)+1)*(len(b)+1) <= maxDiffCells {
		for range len(a) + 1 {
			common = append(common, make([]int32, len(b)+1))
		}
		for i := len(a) - 1; i >= 0; i-- {
			for j := len(b) - 1; j >= 0; j-- {
				if a[i] == b[j] {
					common[i][j] = common[i+1][j+1] + 1
				} else {
					common[i][j] = max(common[i+1][j], common[i][j+1])
				}
			}
		}
	}
	var out []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case len(common) > 0 && i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, diffLine{' ', a[i], head + i, head + j})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || len(common) == 0 || common[i+1][j] >= common[i][j+1]):
			out = append(out, diffLine{'-', a[i], head + i, head + j})
			i++
		default:
			out = append(out, diffLine{'+', b[j], head + i, head + j})
			j++
		}
	}
	return out
}

// formatHunks returns the changed places with their context.
func formatHunks(a, b []string) string {
	lines := compareLines(a, b)
	var out strings.Builder
	for i := 0; i < len(lines); i++ {
		if lines[i].op == ' ' {
			continue
		}
		last := i
		for j := i; j < len(lines) && j <= last+2*diffContext+1; j++ {
			if lines[j].op != ' ' {
				last = j
			}
		}
		from, to := max(0, i-diffContext), min(len(lines), last+diffContext+1)
		writeHunk(&out, lines[from:to])
		i = to - 1
	}
	return out.String()
}

func writeHunk(out *strings.Builder, lines []diffLine) {
	var inA, inB int
	for _, l := range lines {
		if l.op != '+' {
			inA++
		}
		if l.op != '-' {
			inB++
		}
	}
	fmt.Fprintf(out, "@@ -%s +%s @@\n", formatRange(lines[0].a, inA), formatRange(lines[0].b, inB))
	for _, l := range lines {
		out.WriteByte(l.op)
		out.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// formatRange returns a range of lines for the header of a hunk.
func formatRange(start, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", start)
	case 1:
		return fmt.Sprint(start + 1)
	default:
		return fmt.Sprintf("%d,%d", start+1, count)
	}
}
