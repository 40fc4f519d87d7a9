package run

import (
	"slices"
	"strings"
	"time"
	"unicode"
)

// resumeQuery is the description of a run in words.
type resumeQuery struct {
	// words are the search words without stop words.
	words []string
	// since and until bound the time of the last change if the query mentions a time.
	since, until time.Time
}

// parseQuery removes time expressions and stop words from a request such as "resume the
// auth refactoring from yesterday".
func parseQuery(text string, now time.Time) resumeQuery {
	var q resumeQuery
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./#@", r)
	})
	for i := 0; i < len(words); i++ {
		word := strings.Trim(words[i], "-_./#@")
		following := ""
		if i+1 < len(words) {
			following = strings.Trim(words[i+1], "-_./#@")
		}
		used := q.parseTime(word, following, now)
		i += max(used-1, 0)
		if used == 0 && word != "" && !isStopWord(word) && !slices.Contains(q.words, word) {
			q.words = append(q.words, word)
		}
	}
	const most = 16
	q.words = q.words[:min(len(q.words), most)]
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

// isStopWord reports whether a word is so common in requests to resume a run that it does
// not help to find the run.
func isStopWord(word string) bool {
	switch word {
	case "a", "an", "the", "this", "that", "my", "our", "your", "it", "its", "i", "we", "you", "me", "us",
		"to", "of", "on", "in", "at", "for", "from", "with", "about", "by", "and", "or", "as", "is", "was", "were", "be",
		"what", "where", "which", "when", "who", "how", "can", "could", "please", "let", "lets", "s",
		"resume", "continue", "go", "back", "pick", "up", "again", "get", "finish", "keep", "going", "work", "working",
		"run", "runs", "workflow", "task", "last", "left", "off", "started", "doing", "did", "had", "have", "been", "do":
		return true
	default:
		return false
	}
}
