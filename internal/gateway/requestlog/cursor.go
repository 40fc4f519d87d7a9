package requestlog

import (
	"strconv"

	"github.com/guideway-dev/guideway"
)

// cursorPrefix begins a cursor, so that no other number is taken for one.
const cursorPrefix = "q"

// Cursor writes a place in the record, for a list to go on behind it.
func Cursor(num int64) string { return cursorPrefix + strconv.FormatInt(num, 36) }

// ParseCursor reads a place; "" is 0.
func ParseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	num, err := int64(0), strconv.ErrSyntax
	if len(text) > 1 && text[:1] == cursorPrefix {
		num, err = strconv.ParseInt(text[1:], 36, 64)
	}
	if err != nil || num <= 0 {
		return 0, guideway.Errorf(guideway.CodeInvalid, "%.40q is no cursor of this list", text).
			WithFix("give the cursor that the page before names, or none")
	}
	return num, nil
}

// Page is a part of the record.
type Page struct {
	Entries []Entry `json:"requests"`
	// Next continues the list, as the cursor; it is empty at the end.
	Next string `json:"next,omitempty"`
}

// PageOf makes a page of a list that was read with one entry more than the page
// has.
func PageOf(list []Entry, limit int) Page {
	p := Page{Entries: list}
	if len(list) > limit {
		p.Entries = list[:limit]
		p.Next = Cursor(list[limit-1].Num)
	}
	return p
}
