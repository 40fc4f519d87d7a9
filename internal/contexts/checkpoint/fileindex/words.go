package fileindex

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/kljensen/snowball/english"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// wordStems returns the stems of the words of a text.
func wordStems(text string) map[string]bool {
	found := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		found[english.Stem(word, true)] = true
	}
	return found
}

// filterByWords returns the items that match all words of a filter, in the order of the
// list. With Any it returns the items that match at least one word, the best matches first.
func filterByWords(list []item, f checkpoint.Filter) []item {
	if len(f.Words) == 0 {
		return list
	}
	wanted := wordStems(strings.Join(f.Words, " "))
	has := make([]map[string]bool, len(list))
	count := map[string]int{}
	for i, one := range list {
		has[i] = map[string]bool{}
		there := wordStems(one.searchText())
		for word := range wanted {
			if there[word] {
				has[i][word] = true
				count[word]++
			}
		}
	}
	var found []item
	scores := map[string]float64{}
	for i, one := range list {
		if len(wanted) == 0 || len(has[i]) == 0 || !f.Any && len(has[i]) < len(wanted) {
			continue
		}
		for word := range has[i] {
			scores[one.ID] += math.Log(1 + float64(len(list))/float64(count[word]))
		}
		found = append(found, one)
	}
	if f.Any {
		slices.SortStableFunc(found, func(a, b item) int { return cmp.Compare(scores[b.ID], scores[a.ID]) })
	}
	return found
}
