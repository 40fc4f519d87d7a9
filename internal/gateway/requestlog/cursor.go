package requestlog

import (
	"strconv"

	"github.com/guideway-dev/guideway"
)

// cursorPrefix distinguishes a cursor from other numbers.
const cursorPrefix = "q"

// Cursor returns the cursor of a position in the log, for the next page.
func Cursor(num int64) string { return cursorPrefix + strconv.FormatInt(num, 36) }

// ParseCursor parses a cursor. An empty cursor is position 0.
func ParseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	num, err := int64(0), strconv.ErrSyntax
	if len(text) > 1 && text[:1] == cursorPrefix {
		num, err = strconv.ParseInt(text[1:], 36, 64)
	}
	if err != nil || num <= 0 {
		return 0, guideway.Errorf(guideway.CodeInvalid, "%.40q is not a cursor of this list", text).
			WithFix("use the cursor that the previous page returned as \"next\", or omit the cursor")
	}
	return num, nil
}

// Page is a page of the log.
type Page struct {
	Entries []Entry `json:"requests"`
	// Next is the cursor of the next page; empty on the last one.
	Next string `json:"next,omitempty"`
}

// PageOf makes a page of a list that was read with one entry more than the limit.
func PageOf(list []Entry, limit int) Page {
	p := Page{Entries: list}
	if len(list) > limit {
		p.Entries = list[:limit]
		p.Next = Cursor(list[limit-1].Num)
	}
	return p
}
