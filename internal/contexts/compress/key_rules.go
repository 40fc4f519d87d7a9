package compress

import (
	"slices"
	"strings"
)

// keyPosition is the part of a key that a rule matches.
type keyPosition int

const (
	// wholeKey matches if the key consists of the words.
	wholeKey keyPosition = iota
	// keyStart matches if the key begins with the words.
	keyStart
	// keyEnd matches if the key ends with the words. The last word of an English compound is
	// its kind: a userGoalTimestamp is a time, not a goal.
	keyEnd
	// anyWords matches if the key contains the words.
	anyWords
)

// keyRule is one row of the key table. It matches whole words only: "catalog" and "login"
// are not logs, "template" and "temperature" are not temporary. A phrase of several words
// is written with spaces.
type keyRule struct {
	at    keyPosition
	words string // phrases, separated by |
	layer Layer
	why   string
}

// keyTable returns the rules in their order; the first match decides. Most rules for the
// last word come before rules for the first word, since the last word of a key is its kind.
func keyTable() []keyRule {
	return slices.Concat(transientRules(), taskRules(), workRules(), materialRules(), requirementRules(), patternRules(), artifactRules(), generalRules())
}

// transientRules match keys for times and other values that are valid only at one moment.
func transientRules() []keyRule {
	return []keyRule{
		{keyEnd, "timestamp|timestamps|timestamp ms|timestamp utc|created at|updated at|started at|ended at|finished at|" +
			"completed at|modified at|saved at|checked at|expires at|seen at|last updated|last modified|last seen|" +
			"start time|end time|current time|run time|elapsed time|request time|response time|wall time|" +
			"elapsed|elapsed ms|duration|duration ms|uptime|heartbeat|ping|last run", Ephemeral, "a time"},
		{keyEnd, "request id|trace id|span id|correlation id|process id|nonce|pid|poll count|memory usage|cpu usage|" +
			"spinner|progress bar|loading state|loading", Ephemeral, "valid only at one moment"},
		{wholeKey, "now|cache|cached|buffer|trace|scratch|scratchpad|today", Ephemeral, "valid only at one moment"},
	}
}

// workRules match keys for choices, results of the work, open work and errors.
func workRules() []keyRule {
	return []keyRule{
		// A word for a choice takes precedence over the words for the kind of value.
		{keyStart, "chosen|selected|approved|agreed|confirmed assumptions|confirmed scope", Critical, "a choice"},

		{
			keyEnd, "plan|plans|roadmap|milestones|strategy|strategies|approach|analysis|analyses|analysis results|" +
				"analysis summary|findings|finding|hypothesis|hypotheses|root cause|cause|causes|insight|insights|" +
				"conclusion|conclusions|recommendation|recommendations|review|reviews|assessment|evaluation|" +
				"summary|reasoning|reasoning chain|evidence|evidence log|diagnosis|comparison|verdict|investigation",
			Important, "a result of the work",
		},
		{
			keyEnd, "risk|risks|question|questions|blocker|blockers|blocked by|issues|assumptions|tradeoffs|" +
				"next steps|next step|next action|next actions|todo|todos|remaining work|subtasks|task list|checklist|" +
				"progress|completed steps|current phase|current step|dependencies|lessons learned|decision pending|" +
				"pending decision|pending decisions|vulnerabilities|gaps|workaround|workarounds",
			Important, "open or current work",
		},
		{keyEnd, "error|errors|last error|error message|error messages|exception|exceptions|failure|failures|failing tests|" +
			"stack trace|stacktrace|traceback|test failures|test results|test result|verification results|" +
			"validation results|warnings", Important, "an error or a test result"},

		{keyEnd, "branch name|data model|domain model|threat model", Important, "an artifact or a result"},
	}
}

// materialRules match keys for material that can be obtained again, and for texts about a
// thing rather than the thing itself.
func materialRules() []keyRule {
	return []keyRule{
		{
			keyEnd, "code|snippet|snippets|example|examples|sample|samples|template|templates|format|column|columns|field|" +
				"settings|setting|config|configuration|policy|name|names|txt|model|tree|size|level|file contents|" +
				"contents|content|diff|patch|directory|dir quota|rotation|fixture|fixtures|schema|spec|chart|state|" +
				"transcript|documentation|docs|readme|style|colors|color|text|page|form|example usage|cache policy|" +
				"template cache|count|attempts|iterations|icon|base|unit|engine|runner|profile|interface",
			Useful, "source material, or a description",
		},
	}
}

// requirementRules match keys for requests, demands and decisions.
func requirementRules() []keyRule {
	return []keyRule{
		{wholeKey, "scope|mission|instructions|approval|rationale|decided|must have|must not change|priorities|agreement|non goals|" +
			"out of scope|not in scope|invariants", Critical, "a requirement or a decision"},
		{
			keyEnd, "goal|goals|objective|objectives|requirement|requirements|acceptance criteria|success criteria|" +
				"definition of done|constraint|constraints|problem statement|mission statement|business rules|" +
				"original request|user request|original prompt|task description|task scope|agreed scope|project scope",
			Critical, "a requirement",
		},
		{keyEnd, "decision|decisions|decision log|rationale|rejected alternatives|confirmed assumptions|approval|approvals|" +
			"user preferences|user preference|user instructions|user feedback|invariant", Critical, "a decision"},
		{wholeKey, "task complexity|task type|bug type|task kind|project type", Critical, "the kind and size of the task"},
	}
}

// patternRules match keys for logs, caches and temporary values. They also match prefixes
// of keys for critical and important values, if no rule matches the last word.
func patternRules() []keyRule {
	return []keyRule{
		{keyStart, "debug|debugging|log|logs|temp|tmp|temporary|scratch|cached|heartbeat|spinner", Ephemeral, "debug output, a log or a temporary value"},
		{wholeKey, "build log|install log|compile log|deploy log|test log", Useful, "output of a tool"},
		{keyEnd, "access log|request logs|app log|session log|event log|verbose log|trace log|server log|logs|log|" +
			"query cache|cache|log buffer", Ephemeral, "a log or a cache"},

		{
			keyStart, "user goal|user goals|user requirement|user requirements|user constraint|user constraints|user decision",
			Critical, "the prefix of a requirement",
		},
		{
			keyStart, "analysis|findings|implementation plan|implementation strategy|implementation|hypotheses|root cause",
			Important, "the prefix of a result",
		},
	}
}

// artifactRules match keys for artifacts and their locations, and for other results of the
// work.
func artifactRules() []keyRule {
	return []keyRule{
		{keyEnd, "files changed|changed files|modified files|files modified|created files|deleted files|artifacts|" +
			"deliverables|branch|branch name|commit hash|commit|pr url|pull request|ticket id|issue number|" +
			"deployment url|output path|entry point", Important, "an artifact or its location"},
		{keyEnd, "architecture|architecture overview|design|design doc|data model|reproduction steps|steps to reproduce|" +
			"solution|proposed changes|fix|comments", Important, "a result of the work"},
		{keyStart, "affected|proposed|confirmed|completed", Important, "a result of the work"},
		{keyEnd, "score", Important, "a judgement"},
	}
}

// compiledRule is a row of the key table with its phrases as a set.
type compiledRule struct {
	keyRule
	phrases map[string]bool
	// longest is the number of words of the longest phrase.
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

// keyForm is a key as a text of its words, separated by spaces.
type keyForm struct {
	text string
	// starts are the indexes of the words, plus the index after the last word and its
	// separator.
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

// joinWords returns the words from the first index up to, but not including, the second.
func (f keyForm) joinWords(from, to int) string { return f.text[f.starts[from] : f.starts[to]-1] }

// findPhrase returns the longest phrase of the rule that the key contains at the rule's
// position.
func (r compiledRule) findPhrase(f keyForm) (string, bool) {
	words := len(f.starts) - 1
	if r.at == wholeKey {
		return f.text, r.phrases[f.text]
	}
	for n := min(r.longest, words); n > 0; n-- {
		from, to := 0, 0
		switch r.at {
		case keyEnd:
			from, to = words-n, words-n
		case anyWords:
			to = words - n
		}
		for ; from <= to; from++ {
			if part := f.joinWords(from, from+n); r.phrases[part] {
				return part, true
			}
		}
	}
	return "", false
}

// describePosition returns the verb for a verdict, such as "begins with".
func (p keyPosition) describePosition() string {
	switch p {
	case keyStart:
		return "begins with"
	case keyEnd:
		return "ends with"
	case anyWords:
		return "has"
	default:
		return "is"
	}
}
