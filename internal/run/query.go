package run

import (
	"strings"
	"time"
	"unicode"

	"github.com/guideway-dev/guideway/internal/platform/words"
)

// resumeQuery is the description of a run in words.
type resumeQuery struct {
	// words are the search words without stop words.
	words words.Query
	// since and until bound the time of the last change if the query mentions a time.
	since, until time.Time
}

// parseQuery removes time expressions and stop words from a request such as "resume the
// auth refactoring from yesterday".
func parseQuery(text string, now time.Time) resumeQuery {
	var q resumeQuery
	var rest []string
	list := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.M, unicode.N) && !strings.ContainsRune("-_./#@", r)
	})
	for i := 0; i < len(list); i++ {
		word := strings.Trim(list[i], "-_./#@")
		following := ""
		if i+1 < len(list) {
			following = strings.ToLower(strings.Trim(list[i+1], "-_./#@"))
		}
		used := q.parseTime(strings.ToLower(word), following, now)
		i += max(used-1, 0)
		if used == 0 && !words.IsStopWord(strings.ToLower(word)) {
			rest = append(rest, word)
		}
	}
	q.words = words.Parse(strings.Join(rest, " "))
	return q
}

// parseTime parses a time expression of one or two words and returns the number of words
// used.
func (q *resumeQuery) parseTime(word, following string, now time.Time) int {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	week := today.AddDate(0, 0, -(int(today.Weekday())+6)%7)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	switch {
	case word == "today":
		q.since, q.until = today, time.Time{}
		return 1
	case word == "yesterday":
		q.since, q.until = today.AddDate(0, 0, -1), today
		return 1
	case word == "this" && following == "week":
		q.since, q.until = week, time.Time{}
	case word == "last" && following == "week":
		q.since, q.until = week.AddDate(0, 0, -7), week
	case word == "this" && following == "month":
		q.since, q.until = month, time.Time{}
	case word == "last" && following == "month":
		q.since, q.until = month.AddDate(0, -1, 0), month
	default:
		day, err := time.ParseInLocation(time.DateOnly, word, now.Location())
		if err != nil {
			return 0
		}
		q.since, q.until = day, day.AddDate(0, 0, 1)
		return 1
	}
	return 2
}
