// Package textpart selects parts of a text: its beginning, a range of lines, or the lines
// that contain words.
package textpart

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
)

// Clip returns the start of a text, at most a number of bytes, without half a character.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// Shorten returns the start of a text like Clip, with an ellipsis after it if it is cut.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return Clip(text, most) + "…"
}

// SplitLines returns the lines of a text with their line ends. It splits a longer line at a
// space, into lines of at most a number of bytes.
func SplitLines(text string, most int) []string {
	var list []string
	for line := range strings.Lines(text) {
		for len(line) > most {
			part := Clip(line, most)
			if space := strings.LastIndexByte(part, ' ') + 1; space > most/2 {
				part = part[:space]
			}
			if part == "" { // The limit is shorter than a character.
				break
			}
			list, line = append(list, part), line[len(part):]
		}
		list = append(list, line)
	}
	return list
}

// ParseRange returns the first and the last line that a range such as "120-180", "120-" or
// "120" selects from a text of count lines.
func ParseRange(lines string, count int) (first, last int, err error) {
	from, to, ranged := strings.Cut(lines, "-")
	first, err = strconv.Atoi(strings.TrimSpace(from))
	last = first
	if to = strings.TrimSpace(to); ranged && err == nil {
		if last = count; to != "" {
			last, err = strconv.Atoi(to)
		}
	}
	if err != nil || first < 1 || last < first || first > count {
		return 0, 0, guideway.Errorf(guideway.CodeInvalid, "lines is %.60q, which selects no line of the text", lines).
			WithFix("use a number or a range from 1 to %d, such as \"1-%d\"", count, min(count, 50))
	}
	return first, min(last, count), nil
}

const (
	// maxMatches is the maximum number of lines that FindLines returns, and matchAround the
	// number of bytes of a long line before and after the match.
	maxMatches  = 100
	matchAround = 200
)

// FindLines returns the lines that contain a text, in any case, with their numbers, which
// begin with first. If no line contains the text, it returns those that contain each of its
// words.
func FindLines(lines []string, first int, text string) ([]string, error) {
	wanted := strings.ToLower(text)
	for _, words := range [][]string{{wanted}, strings.Fields(wanted)} {
		var found []string
		count := 0
		for i, line := range lines {
			line = strings.TrimRight(line, "\r\n")
			at := indexWords(strings.ToLower(line), words)
			if at < 0 {
				continue
			}
			if count++; count <= maxMatches {
				// at is an index in the lower-cased line, which can be longer: ToLower
				// changes the byte length of some letters.
				found = append(found, fmt.Sprintf("%d: %s\n", first+i, clipAround(line, min(at, len(line)), len(words[0]))))
			}
		}
		if count > maxMatches {
			found = append(found, fmt.Sprintf("More matching lines: %d; search for a longer text.\n", count-maxMatches))
		}
		if count > 0 {
			return found, nil
		}
	}
	return nil, guideway.Errorf(guideway.CodeNotFound, "no line contains %.100q", text).WithFix("search for a shorter text; the search ignores case")
}

// indexWords returns the index of the first word in a line that contains all words, or -1.
func indexWords(line string, words []string) int {
	first := -1
	for i, word := range words {
		at := strings.Index(line, word)
		if at < 0 {
			return -1
		}
		if i == 0 {
			first = at
		}
	}
	return first
}

// clipAround returns a long line near a match, and a short line whole.
func clipAround(line string, at, length int) string {
	from, to := max(at-matchAround, 0), min(at+length+matchAround, len(line))
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	text := line[from:to]
	if from > 0 {
		text = fmt.Sprintf("… (byte %d) %s", from, text)
	}
	if to < len(line) {
		text += " …"
	}
	return text
}
