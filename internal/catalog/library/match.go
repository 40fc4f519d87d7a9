package library

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MatchStatus says what a search for an activity came to.
type MatchStatus string

// The outcomes.
const (
	// MatchFound: the first match is meant.
	MatchFound MatchStatus = "matched"
	// MatchAmbiguous: the first matches are as good as each other.
	MatchAmbiguous MatchStatus = "ambiguous"
	// MatchNone: nothing fits; the matches are the nearest.
	MatchNone MatchStatus = "none"
)

// Match is an activity that a goal may mean.
type Match struct {
	Activity *Entry
	// Score is from 0 to 1; 1 is a recognition phrase, word for word.
	Score float64
	// Why says what fits.
	Why []string
}

// The bounds of what is a match.
const (
	// enough is the score of a match.
	enough = 0.35
	// Apart is by how much the first match must beat the second.
	Apart = 0.08
	// mostMatches bounds the answer.
	mostMatches = 5
	// maxGoal bounds the words of a goal that are looked at.
	maxGoal = 200
)

// The score of a phrase that is the goal, the least of one that the goal has in
// it, and of one that it has in it with words between; the weights of the parts of
// an activity.
const (
	scoreExact     = 1.0
	scoreContained = 0.8
	scoreSpread    = 0.5
	weightPhrase   = 0.65
	weightProblem  = 0.2
	weightOutcome  = 0.15
)

// Match ranks the activities by how well they fit a goal in a user's words: a
// recognition phrase that is the goal, one that the goal has in it, and then by
// the words of recognition, problem and outcome, of which rare ones count more.
// Words that may turn the goal into its opposite make a question of it, unless a
// phrase has them too. The same goal always has the same answer.
func (l *Library) Match(goal string) (MatchStatus, []Match) {
	m := newMatcher(l.Activities(), goal)
	var matches []Match
	for i, entry := range l.Activities() {
		if score, why := m.score(i); score > 0 {
			matches = append(matches, Match{entry, score, why})
		}
	}
	slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	matches = matches[:min(len(matches), mostMatches)]
	switch {
	case len(matches) == 0 || matches[0].Score < enough:
		return MatchNone, matches
	case len(matches) > 1 && matches[0].Score-matches[1].Score < Apart:
		return MatchAmbiguous, matches
	case m.negation() != "" && matches[0].Score < scoreExact:
		matches[0].Why = append(matches[0].Why, fmt.Sprintf("but the words %q may mean the opposite", m.negation()))
		return MatchAmbiguous, matches
	default:
		return MatchFound, matches
	}
}

// matcher compares one goal with all activities.
type matcher struct {
	plain string
	goal  []string
	// said are the words of the goal by their stems.
	said     map[string]string
	entries  []*Entry
	profiles []profile
	weights  map[string]float64
	unknown  float64
}

// profile is an activity as sets of stems.
type profile struct {
	phrases          [][]string
	problem, outcome []string
}

func newMatcher(entries []*Entry, goal string) *matcher {
	spoken := words(goal)
	spoken = spoken[:min(len(spoken), maxGoal)]
	m := &matcher{
		plain: strings.Join(spoken, " "), goal: stems(spoken), said: map[string]string{}, entries: entries, weights: map[string]float64{},
	}
	for _, word := range spoken {
		if s := stem(word); m.said[s] == "" {
			m.said[s] = word
		}
	}
	count := map[string]int{}
	for _, entry := range entries {
		a := entry.Activity
		p := profile{problem: stems(words(a.Problem)), outcome: stems(words(strings.Join(a.Outcome, " ")))}
		all := slices.Concat(p.problem, p.outcome)
		for _, phrase := range a.Recognition {
			p.phrases = append(p.phrases, stems(words(phrase)))
			all = append(all, p.phrases[len(p.phrases)-1]...)
		}
		slices.Sort(all)
		for _, word := range slices.Compact(all) {
			count[word]++
		}
		m.profiles = append(m.profiles, p)
	}
	for word, n := range count {
		m.weights[word] = rarity(n, len(entries))
	}
	// A word that no activity has says as much as one that half of them have.
	m.unknown = min(math.Ln2, rarity(1, len(entries)))
	return m
}

// rarity is what a word says that so many of all activities have: next to nothing
// where all have it, for it does not tell them apart.
func rarity(have, all int) float64 {
	return math.Log(float64(all+1) / (float64(have) + 0.5))
}

// negation gives the words of the goal that may turn it into its opposite, or "".
func (m *matcher) negation() string {
	for _, words := range []string{"dont", "do not", "not to", "never", "no longer", "rather not", "instead of"} {
		if strings.Contains(" "+m.plain+" ", " "+words+" ") {
			return words
		}
	}
	return ""
}

// score says how well an activity fits, and why.
func (m *matcher) score(i int) (float64, []string) {
	if m.plain == "" {
		return 0, nil
	}
	for _, phrase := range m.entries[i].Activity.Recognition {
		if plainWords(phrase) == m.plain {
			return scoreExact, []string{fmt.Sprintf("it is the phrase %q", phrase)}
		}
	}
	longest, inside := "", ""
	for _, phrase := range m.entries[i].Activity.Recognition {
		plain := plainWords(phrase)
		// A single word in a goal says little.
		if strings.Contains(plain, " ") && len(plain) > len(longest) && strings.Contains(" "+m.plain+" ", " "+plain+" ") {
			longest, inside = plain, phrase
		}
	}
	if longest != "" {
		score := scoreContained + (scoreExact-scoreContained)*float64(len(longest))/float64(len(m.plain))
		return round(score), []string{fmt.Sprintf("it has the phrase %q in it", inside)}
	}
	return m.overlap(i)
}

// round keeps what a person can read of a score.
func round(score float64) float64 { return math.Round(score*1000) / 1000 }

// overlap is the score by words.
func (m *matcher) overlap(i int) (score float64, why []string) {
	p := m.profiles[i]
	best, phrase := 0.0, -1
	for j, words := range p.phrases {
		shared := m.weight(common(m.goal, words))
		// What the phrase has of the goal counts as much as what the goal has
		// of the phrase.
		s := weightPhrase * 2 * shared / (m.weight(m.goal) + m.weight(words))
		if spread(m.goal, words) {
			s = max(s, scoreSpread+(scoreContained-scoreSpread)*shared/m.weight(m.goal))
		}
		if shared > 0 && s > best {
			best, phrase = s, j
		}
	}
	score = best
	if phrase >= 0 {
		why = append(why, fmt.Sprintf("the phrase %q shares: %s",
			m.entries[i].Activity.Recognition[phrase], m.inWords(common(m.goal, p.phrases[phrase]))))
	}
	for _, part := range []struct {
		name   string
		words  []string
		weight float64
	}{{"problem", p.problem, weightProblem}, {"outcome", p.outcome, weightOutcome}} {
		if shared := common(m.goal, part.words); len(shared) > 0 {
			score += part.weight * m.weight(shared) / m.weight(m.goal)
			why = append(why, fmt.Sprintf("its %s shares: %s", part.name, m.inWords(shared)))
		}
	}
	return round(min(score, scoreContained)), why
}

// spread says whether a goal has all words of a phrase in their order: "run the
// nightly workflow" has "run a workflow". One word in a goal says little.
func spread(goal, phrase []string) bool {
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

// inWords lists stems as the goal has them.
func (m *matcher) inWords(stems []string) string {
	list := make([]string, len(stems))
	for i, s := range stems {
		list[i] = m.said[s]
	}
	return strings.Join(list, ", ")
}

// weight sums what words say. A number that no activity has is that of a ticket
// or the like, and says nothing.
func (m *matcher) weight(words []string) (sum float64) {
	for _, word := range words {
		if w, ok := m.weights[word]; ok {
			sum += w
		} else if strings.Trim(word, "0123456789") != "" {
			sum += m.unknown
		}
	}
	return sum
}

// common are the words of a that b has too.
func common(a, b []string) []string {
	var both []string
	for _, word := range a {
		if slices.Contains(b, word) {
			both = append(both, word)
		}
	}
	return both
}

// stems are the different words that say something, without their endings, in
// order.
func stems(words []string) []string {
	var list []string
	for _, word := range words {
		if isFiller(word) {
			continue
		}
		if s := stem(word); !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}

// isFiller says whether a word says nothing of a goal.
func isFiller(word string) bool {
	const fillers = " a an and are as at be by can could do does for from had has have hello hey hi i id ill im in is it its ive let lets me my of on or our " +
		"please should so some that the their then there these they this to us was we were what when where which will with would you your "
	return strings.Contains(fillers, " "+word+" ")
}

// stem takes the usual English endings off a word, the same for all its forms
// though not always the form of a dictionary.
func stem(word string) string {
	const shortest = 3
	for _, ending := range []string{"ings", "ing", "ied", "ies", "edly", "ed", "es", "s", "ly", "e", "y"} {
		rest, found := strings.CutSuffix(word, ending)
		if !found || len(rest) < shortest || ending == "s" && strings.HasSuffix(rest, "s") {
			continue
		}
		if n := len(rest); n > shortest && rest[n-1] == rest[n-2] && (ending == "ing" || ending == "ed") && !strings.ContainsAny(rest[n-1:], "lsz") {
			rest = rest[:n-1] // running
		}
		return strings.TrimSuffix(rest, "e")
	}
	return word
}
