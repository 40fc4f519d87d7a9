package window

import (
	"slices"
	"strings"
)

// place says which words of a key a rule looks at.
type place int

const (
	// whole: the key's words are these and no more.
	whole place = iota
	// first: the key begins with one of them.
	first
	// last: the key ends with one of them. An English compound is a kind of
	// its last word: a userGoalTimestamp is a time, no goal.
	last
	// within: they stand anywhere in the key.
	within
)

// keyRule is one row of the table of keys. Its words are anchored: they are
// whole words at one place of a key. "catalog" and "login" are not logs,
// "template" and "temperature" are not temporary. A phrase of several words is
// written with spaces.
type keyRule struct {
	at    place
	words string // separated by |
	layer Layer
	why   string
}

// keyTable is the design's table of patterns, mended and widened. The first
// rule that matches decides, so what names a kind of thing by its last word
// stands before what only begins like one.
func keyTable() []keyRule {
	return slices.Concat(momentRules(), taskRules(), workRules(), materialRules(), askedRules(), patternRules(), madeRules(), generalRules())
}

// momentRules are times and what belongs to one moment, whatever they are of.
func momentRules() []keyRule {
	return []keyRule{
		{last, "timestamp|timestamps|timestamp ms|timestamp utc|created at|updated at|started at|ended at|finished at|" +
			"completed at|modified at|saved at|checked at|expires at|seen at|last updated|last modified|last seen|" +
			"start time|end time|current time|run time|elapsed time|request time|response time|wall time|" +
			"elapsed|elapsed ms|duration|duration ms|uptime|heartbeat|ping|last run", Ephemeral, "a time"},
		{last, "request id|trace id|span id|correlation id|process id|nonce|pid|poll count|memory usage|cpu usage|" +
			"spinner|progress bar|loading state|loading", Ephemeral, "a matter of one moment"},
		{whole, "now|cache|cached|buffer|trace|scratch|scratchpad|today", Ephemeral, "a matter of one moment"},
	}
}

// workRules are what was worked out, found or made.
func workRules() []keyRule {
	return []keyRule{
		// What somebody chose outweighs what kind of thing it is.
		{first, "chosen|selected|approved|agreed|confirmed assumptions|confirmed scope", Critical, "what was chosen"},

		// What was worked out, made or found.
		{
			last, "plan|plans|roadmap|milestones|strategy|strategies|approach|analysis|analyses|analysis results|" +
				"analysis summary|findings|finding|hypothesis|hypotheses|root cause|cause|causes|insight|insights|" +
				"conclusion|conclusions|recommendation|recommendations|review|reviews|assessment|evaluation|" +
				"summary|reasoning|reasoning chain|evidence|evidence log|diagnosis|comparison|verdict|investigation",
			Important, "what was worked out",
		},
		{
			last, "risk|risks|question|questions|blocker|blockers|blocked by|issues|assumptions|tradeoffs|" +
				"next steps|next step|next action|next actions|todo|todos|remaining work|subtasks|task list|checklist|" +
				"progress|completed steps|current phase|current step|dependencies|lessons learned|decision pending|" +
				"pending decision|pending decisions|vulnerabilities|gaps|workaround|workarounds",
			Important, "what is open or under way",
		},
		{last, "error|errors|last error|error message|error messages|exception|exceptions|failure|failures|failing tests|" +
			"stack trace|stacktrace|traceback|test failures|test results|test result|verification results|" +
			"validation results|warnings", Important, "what went wrong or was tested"},

		{last, "branch name|data model|domain model|threat model", Important, "what was made or worked out"},
	}
}

// materialRules are what can be had again, or is about a thing instead of being it.
func materialRules() []keyRule {
	return []keyRule{
		{
			last, "code|snippet|snippets|example|examples|sample|samples|template|templates|format|column|columns|field|" +
				"settings|setting|config|configuration|policy|name|names|txt|model|tree|size|level|file contents|" +
				"contents|content|diff|patch|directory|dir quota|rotation|fixture|fixtures|schema|spec|chart|state|" +
				"transcript|documentation|docs|readme|style|colors|color|text|page|form|example usage|cache policy|" +
				"template cache|count|attempts|iterations|icon|base|unit|engine|runner|profile|interface",
			Useful, "material, or about a thing and not the thing itself",
		},
	}
}

// askedRules are what was asked for, demanded or decided.
func askedRules() []keyRule {
	return []keyRule{
		{whole, "scope|mission|instructions|approval|rationale|decided|must have|must not change|priorities|agreement|non goals|" +
			"out of scope|not in scope|invariants", Critical, "what was asked for or decided"},
		{
			last, "goal|goals|objective|objectives|requirement|requirements|acceptance criteria|success criteria|" +
				"definition of done|constraint|constraints|problem statement|mission statement|business rules|" +
				"original request|user request|original prompt|task description|task scope|agreed scope|project scope",
			Critical, "what was asked for",
		},
		{last, "decision|decisions|decision log|rationale|rejected alternatives|confirmed assumptions|approval|approvals|" +
			"user preferences|user preference|user instructions|user feedback|invariant", Critical, "what was decided"},
		{whole, "task complexity|task type|bug type|task kind|project type", Critical, "the kind and size of the task"},
	}
}

// patternRules are the design's patterns: beginnings that tell what is ephemeral, and,
// for keys whose last word says nothing, what is dear.
func patternRules() []keyRule {
	return []keyRule{
		{first, "debug|debugging|log|logs|temp|tmp|temporary|scratch|cached|heartbeat|spinner", Ephemeral, "debug output, a log or temporary"},
		{whole, "build log|install log|compile log|deploy log|test log", Useful, "output of a tool"},
		{last, "access log|request logs|app log|session log|event log|verbose log|trace log|server log|logs|log|" +
			"query cache|cache|log buffer", Ephemeral, "a log or a cache"},

		// The design's beginnings, for keys whose last word says nothing.
		{
			first, "user goal|user goals|user requirement|user requirements|user constraint|user constraints|user decision",
			Critical, "begins like what the user asked for",
		},
		{
			first, "analysis|findings|implementation plan|implementation strategy|implementation|hypotheses|root cause",
			Important, "begins like what was worked out",
		},
	}
}

// madeRules are what was made, where it is, and what is left of what was worked out.
func madeRules() []keyRule {
	return []keyRule{
		{last, "files changed|changed files|modified files|files modified|created files|deleted files|artifacts|" +
			"deliverables|branch|branch name|commit hash|commit|pr url|pull request|ticket id|issue number|" +
			"deployment url|output path|entry point", Important, "what was made, or where it is"},
		{last, "architecture|architecture overview|design|design doc|data model|reproduction steps|steps to reproduce|" +
			"solution|proposed changes|fix|comments", Important, "what was worked out"},
		{first, "affected|proposed|confirmed|completed", Important, "what was worked out"},
		{last, "score", Important, "a judgement"},
	}
}

// compiledRule is a row of the table with its phrases to be looked up.
type compiledRule struct {
	keyRule
	phrases map[string]bool
	// longest is how many words the longest phrase has.
	longest int
}

func compileKeyTable() []compiledRule {
	table := keyTable()
	out := make([]compiledRule, 0, len(table))
	for _, rule := range table {
		c := compiledRule{keyRule: rule, phrases: map[string]bool{}}
		for phrase := range strings.SplitSeq(rule.words, "|") {
			c.phrases[phrase] = true
			c.longest = max(c.longest, 1+strings.Count(phrase, " "))
		}
		out = append(out, c)
	}
	return out
}

// keyForm is a key as its words, one behind the other, with the places between them.
type keyForm struct {
	text string
	// starts are where the words begin, and behind the last one where another would.
	starts []int
}

func formOf(words []string) keyForm {
	f := keyForm{text: strings.Join(words, " "), starts: make([]int, 0, len(words)+1)}
	at := 0
	for _, word := range words {
		f.starts = append(f.starts, at)
		at += len(word) + 1
	}
	f.starts = append(f.starts, at)
	return f
}

// part is the words from one to before another.
func (f keyForm) part(from, to int) string { return f.text[f.starts[from] : f.starts[to]-1] }

// find gives the longest phrase of the rule that a key has at its place.
func (r compiledRule) find(f keyForm) (string, bool) {
	words := len(f.starts) - 1
	if r.at == whole {
		return f.text, r.phrases[f.text]
	}
	for n := min(r.longest, words); n > 0; n-- {
		from, to := 0, 0
		switch r.at {
		case last:
			from, to = words-n, words-n
		case within:
			to = words - n
		}
		for ; from <= to; from++ {
			if part := f.part(from, from+n); r.phrases[part] {
				return part, true
			}
		}
	}
	return "", false
}

// says names the place for a verdict.
func (p place) says() string {
	switch p {
	case first:
		return "begins with"
	case last:
		return "ends with"
	case within:
		return "has"
	default:
		return "is"
	}
}
