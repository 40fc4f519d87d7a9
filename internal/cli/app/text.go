package app

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// CurrentTime returns the current time of the host's clock.
func (h *Host) CurrentTime() time.Time {
	if h.Now == nil {
		return time.Now()
	}
	return h.Now()
}

// FormatAge returns the age of t in words, or the date if t is at least 30 days ago.
func (h *Host) FormatAge(t time.Time) string {
	const day = 24 * time.Hour
	switch d := h.CurrentTime().Sub(t); {
	case d < time.Minute:
		return "just now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < day:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	case d < 30*day:
		return Plural(int(d/day), "day ago", "days ago")
	default:
		return t.Local().Format(time.DateOnly)
	}
}

// FormatAgeOr is like FormatAge, but returns the text in otherwise if at is nil.
func (h *Host) FormatAgeOr(at *time.Time, otherwise string) string {
	if at == nil {
		return otherwise
	}
	return h.FormatAge(*at)
}

// ParseTime parses a date, a time or an age such as 7d. It returns the zero time for "".
func (h *Host) ParseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := config.ParseDuration(text); err == nil {
		return h.CurrentTime().Add(-ago), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%q is not a time", text).
		WithFix(`write a date such as 2026-01-31, a time such as "2026-01-31 14:00", or an age such as 7d`)}
}

// FormatTime formats a time for people, in the local time zone.
func FormatTime(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// FormatBytes formats a size in binary units.
func FormatBytes(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for value >= 1<<10 && unit < len(units)-1 {
		value /= 1 << 10
		unit++
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + " " + units[unit]
}

// OrDash returns "-" for an empty text.
func OrDash(text string) string {
	return cmp.Or(text, "-")
}

// ShortRevision shortens a commit hash to 12 digits, and escapes any other text.
func ShortRevision(revision string) string {
	if len(revision) == 40 && !strings.ContainsFunc(revision, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		return revision[:12]
	}
	return OneLine(revision)
}

// FormatSource returns the name of a source with its revision.
func FormatSource(source, revision string) string {
	if revision == "" {
		return source
	}
	return source + " at " + ShortRevision(revision)
}

// FormatCondition formats a condition. It returns "" for nil and for a condition that is
// always true.
func FormatCondition(c *expr.Expr) string {
	if c == nil || c.Op == expr.Always {
		return ""
	}
	return c.String()
}

// FormatConfirmation formats the condition of a confirmation. It returns "" for nil and for
// a condition that is never true.
func FormatConfirmation(c *expr.Expr) string {
	if c == nil || c.Op == expr.Never {
		return ""
	}
	return c.String()
}

// Wrap breaks a text at spaces into lines of at most n columns. A longer word has its own
// line. Wrap keeps line breaks and indentation, indents the continuation of a list item,
// and does not change fenced code.
func Wrap(text string, n int) []string {
	var out []string
	fenced := false
	for line := range strings.SplitSeq(strings.TrimRight(EscapeText(text), "\n "), "\n") {
		line = strings.TrimRight(strings.ReplaceAll(line, "\t", "    "), " ")
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fence {
			fenced = !fenced
		}
		if fence || fenced || TextWidth(line) <= n {
			out = append(out, line)
			continue
		}
		out = append(out, wrapLine(line, n)...)
	}
	return out
}

func wrapLine(line string, n int) []string {
	lead := linePrefix(line)
	hang := strings.Repeat(" ", TextWidth(lead))
	if len(hang) > n/2 {
		hang = ""
	}
	var out []string
	current, empty := lead, true
	for word := range strings.FieldsSeq(line[len(lead):]) {
		switch {
		case empty:
			current += word
		case TextWidth(current)+1+TextWidth(word) <= n:
			current += " " + word
		default:
			out = append(out, current)
			current = hang + word
		}
		empty = false
	}
	return append(out, current)
}

// linePrefix returns the indentation of a line, with the marker of a list item.
func linePrefix(line string) string {
	rest := strings.TrimLeft(line, " ")
	mark := strings.TrimLeft(rest, "0123456789")
	switch {
	case len(mark) == len(rest) && (strings.HasPrefix(mark, "- ") || strings.HasPrefix(mark, "* ") || strings.HasPrefix(mark, "+ ")),
		len(mark) < len(rest) && (strings.HasPrefix(mark, ". ") || strings.HasPrefix(mark, ") ")):
		rest = strings.TrimLeft(mark[1:], " ")
	}
	return line[:len(line)-len(rest)]
}
