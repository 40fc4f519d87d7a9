package library

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// MatchStatus is the outcome of a search for an activity.
type MatchStatus string

// The outcomes.
const (
	// MatchFound means that the first match fits best.
	MatchFound MatchStatus = "matched"
	// MatchAmbiguous means that the first matches fit about equally well, or that the goal
	// may be negated.
	MatchAmbiguous MatchStatus = "ambiguous"
	// MatchNone means that no activity fits; the matches are the closest ones.
	MatchNone MatchStatus = "none"
)

// Match is an activity that may fit a goal.
type Match struct {
	Activity *Entry
	// Score is from 0 to 1. It is 1 if the goal equals a recognition phrase, word for word.
	Score float64
	// Why lists the parts that match.
	Why []string
}

// The limits of matches.
const (
	// minScore is the minimum score of the first match; below it, no activity fits.
	minScore = 0.35
	// Apart is the minimum lead of the first match over the second; below it, the result is
	// ambiguous.
	Apart = 0.08
	// maxMatches is the maximum number of matches returned.
	maxMatches = 5
	// maxGoal is the maximum number of words of a goal that are compared.
	maxGoal = 200
)

// scoreExact is the score of a phrase that equals the goal. scoreContained is the lowest
// score of a phrase that the goal contains, and scoreSpread that of a phrase whose words
// the goal contains in order with other words between them. The other constants are the
// weights of the parts of an activity.
const (
	scoreExact     = 1.0
	scoreContained = 0.8
	scoreSpread    = 0.5
	weightPhrase   = 0.65
	weightProblem  = 0.2
	weightOutcome  = 0.15
)

// Match ranks the activities by how well they fit a goal in a user's words. An activity
// with a recognition phrase that equals the goal comes first, then one with a phrase that
// the goal contains. The other activities are ranked by the words that the goal shares with
// their recognition phrases, problem and outcome; rare words count more. Words that may
// negate the goal make the result ambiguous, unless a phrase equals the goal. The same goal
// always has the same result.
func (l *Library) Match(goal string) (MatchStatus, []Match) {
	m := newMatcher(l.Activities(), goal)
	var matches []Match
	for i, entry := range l.Activities() {
		if score, why := m.scoreActivity(i); score > 0 {
			matches = append(matches, Match{entry, score, why})
		}
	}
	slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	matches = matches[:min(len(matches), maxMatches)]
	switch {
	case len(matches) == 0 || matches[0].Score < minScore:
		return MatchNone, matches
	case len(matches) > 1 && matches[0].Score-matches[1].Score < Apart:
		return MatchAmbiguous, matches
	case m.findNegation() != "" && matches[0].Score < scoreExact:
		matches[0].Why = append(matches[0].Why, fmt.Sprintf("but %q may mean the opposite", m.findNegation()))
		return MatchAmbiguous, matches
	default:
		return MatchFound, matches
	}
}

// matcher compares one goal with all activities.
type matcher struct {
	plain string
	goal  []string
	// originals maps stems to the words of the goal.
	originals map[string]string
	entries   []*Entry
	profiles  []profile
	weights   map[string]float64
	unknown   float64
}

// profile contains the stems of the words in the parts of an activity.
type profile struct {
	phrases          [][]string
	problem, outcome []string
}

func newMatcher(entries []*Entry, goal string) *matcher {
	spoken := splitWords(goal)
	spoken = spoken[:min(len(spoken), maxGoal)]
	m := &matcher{
		plain: strings.Join(spoken, " "), goal: stemsOf(spoken), originals: map[string]string{}, entries: entries, weights: map[string]float64{},
	}
	for _, word := range spoken {
		if s := words.Stem(word); m.originals[s] == "" {
			m.originals[s] = word
		}
	}
	count := map[string]int{}
	for _, entry := range entries {
		a := entry.Activity
		p := profile{problem: stemsOf(splitWords(a.Problem)), outcome: stemsOf(splitWords(strings.Join(a.Outcome, " ")))}
		all := slices.Concat(p.problem, p.outcome)
		for _, phrase := range a.Recognition {
			p.phrases = append(p.phrases, stemsOf(splitWords(phrase)))
			all = append(all, p.phrases[len(p.phrases)-1]...)
		}
		slices.Sort(all)
		for _, word := range slices.Compact(all) {
			count[word]++
		}
		m.profiles = append(m.profiles, p)
	}
	for word, n := range count {
		m.weights[word] = wordWeight(n, len(entries))
	}
	// A word that no activity contains counts at most as much as a word that half of them
	// contain.
	m.unknown = min(math.Ln2, wordWeight(1, len(entries)))
	return m
}

// wordWeight returns the weight of a word. have is the number of activities that contain
// the word, and all is the number of activities. The weight is nearly zero if all of them
// contain the word.
func wordWeight(have, all int) float64 {
	return math.Log(float64(all+1) / (float64(have) + 0.5))
}

// findNegation returns the words of the goal that may negate it, or "".
func (m *matcher) findNegation() string {
	for _, words := range []string{"dont", "do not", "not to", "never", "no longer", "rather not", "instead of"} {
		if strings.Contains(" "+m.plain+" ", " "+words+" ") {
			return words
		}
	}
	return ""
}

// scoreActivity returns how well an activity fits, and why.
func (m *matcher) scoreActivity(i int) (float64, []string) {
	if m.plain == "" {
		return 0, nil
	}
	for _, phrase := range m.entries[i].Activity.Recognition {
		if plainWords(phrase) == m.plain {
			return scoreExact, []string{fmt.Sprintf("the goal is the phrase %q", phrase)}
		}
	}
	longest, inside := "", ""
	for _, phrase := range m.entries[i].Activity.Recognition {
		plain := plainWords(phrase)
		// A phrase that is a single word is not significant.
		if strings.Contains(plain, " ") && len(plain) > len(longest) && strings.Contains(" "+m.plain+" ", " "+plain+" ") {
			longest, inside = plain, phrase
		}
	}
	if longest != "" {
		score := scoreContained + (scoreExact-scoreContained)*float64(len(longest))/float64(len(m.plain))
		return roundScore(score), []string{fmt.Sprintf("the goal contains the phrase %q", inside)}
	}
	return m.scoreWords(i)
}

// roundScore rounds a score for people.
func roundScore(score float64) float64 { return math.Round(score*1000) / 1000 }

// scoreWords returns the score by words.
func (m *matcher) scoreWords(i int) (score float64, why []string) {
	p := m.profiles[i]
	best, phrase := 0.0, -1
	for j, words := range p.phrases {
		shared := m.sumWeights(commonWords(m.goal, words))
		// The matched part of the goal counts as much as the matched part of the phrase.
		s := weightPhrase * 2 * shared / (m.sumWeights(m.goal) + m.sumWeights(words))
		if containsInOrder(m.goal, words) {
			s = max(s, scoreSpread+(scoreContained-scoreSpread)*shared/m.sumWeights(m.goal))
		}
		if shared > 0 && s > best {
			best, phrase = s, j
		}
	}
	score = best
	if phrase >= 0 {
		why = append(why, fmt.Sprintf("the goal and the phrase %q share: %s",
			m.entries[i].Activity.Recognition[phrase], m.inWords(commonWords(m.goal, p.phrases[phrase]))))
	}
	for _, part := range []struct {
		name   string
		words  []string
		weight float64
	}{{"problem", p.problem, weightProblem}, {"outcome", p.outcome, weightOutcome}} {
		if shared := commonWords(m.goal, part.words); len(shared) > 0 {
			score += part.weight * m.sumWeights(shared) / m.sumWeights(m.goal)
			why = append(why, fmt.Sprintf("the goal and the %s share: %s", part.name, m.inWords(shared)))
		}
	}
	return roundScore(min(score, scoreContained)), why
}

// containsInOrder reports whether a goal has all words of a phrase in their order: "run the
// nightly workflow" contains "run a workflow". It returns false for a phrase of a single
// word, which is not significant.
func containsInOrder(goal, phrase []string) bool {
	if len(phrase) < 2 {
		return false
	}
	for _, word := range phrase {
		i := slices.Index(goal, word)
		if i < 0 {
			return false
		}
		goal = goal[i+1:]
	}
	return true
}

// inWords replaces stems by the words that the goal has for them, and joins the words.
func (m *matcher) inWords(stems []string) string {
	list := lists.Map(stems, func(s string) string { return m.originals[s] })
	return strings.Join(list, ", ")
}

// sumWeights returns the sum of the weights of words. A number that no activity has is
// probably a ticket number and does not count.
func (m *matcher) sumWeights(words []string) (sum float64) {
	for _, word := range words {
		if w, ok := m.weights[word]; ok {
			sum += w
		} else if strings.Trim(word, "0123456789") != "" {
			sum += m.unknown
		}
	}
	return sum
}

// commonWords returns the words of a that are also in b.
func commonWords(a, b []string) []string {
	return lists.Filter(a, func(word string) bool { return slices.Contains(b, word) })
}

// stemsOf returns the distinct stems of the significant words, in order.
func stemsOf(spoken []string) []string {
	var list []string
	for _, word := range spoken {
		if isFiller(word) {
			continue
		}
		if s := words.Stem(word); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// isFiller reports whether a word is not significant in a goal.
func isFiller(word string) bool {
	const fillers = " a an and are as at be by can could do does for from had has have hello hey hi i id ill im in is it its ive let lets me my of on or our " +
		"please should so some that the their then there these they this to us was we were what when where which will with would you your "
	return strings.Contains(fillers, " "+word+" ")
}
