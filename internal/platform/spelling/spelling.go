// Package spelling finds the known word that is closest to a misspelled one, so that an
// error can suggest it.
package spelling

import "strings"

// Closest returns the known word closest to the text, or "" if no word is close. The limit
// is one edit for every three bytes of the text, at most three edits. A word that differs
// only in case, hyphens, underscores and spaces is always close. Closest never returns the
// text unchanged.
func Closest(text string, known []string) string {
	best, bestDistance := "", 1+min(3, len(text)/3)
	for _, word := range known {
		if text == word {
			continue
		}
		if normalizeWord(text) == normalizeWord(word) {
			return word
		}
		if len(text)-len(word) >= bestDistance || len(word)-len(text) >= bestDistance {
			continue
		}
		if d := editDistance(strings.ToLower(text), strings.ToLower(word)); d < bestDistance {
			best, bestDistance = word, d
		}
	}
	return best
}

// normalizeWord returns the word in lower case without hyphens, underscores and spaces.
func normalizeWord(word string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(word))
}

// editDistance returns the number of insertions, deletions, replacements and swaps of
// adjacent letters between two words. Long words are not compared.
func editDistance(a, b string) int {
	const limit = 48
	if len(a) > limit || len(b) > limit {
		return limit
	}
	var rows [3][limit + 1]int
	for j := range len(b) + 1 {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[0][j-2]+1)
			}
			rows[2][j] = d
		}
		rows[0], rows[1] = rows[1], rows[2]
	}
	return rows[1][len(b)]
}
