package session

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// finding is something about a document that its validation log should have.
type finding struct {
	pointer, message string
}

// The words for the status of a dashboard.
const (
	statusInProgress = "in_progress"
	statusComplete   = "complete"
	statusBlocked    = "blocked"
)

// statusWords are what agents write for a status, in plain form. Any other word
// is in progress too, but for the log.
var statusWords = map[string]string{
	"complete": statusComplete, "completed": statusComplete, "done": statusComplete, "finished": statusComplete,
	"blocked": statusBlocked, "stuck": statusBlocked, "waiting": statusBlocked,
	"in_progress": statusInProgress, "inprogress": statusInProgress, "active": statusInProgress,
	"started": statusInProgress, "running": statusInProgress, "working": statusInProgress, "ongoing": statusInProgress,
}

// alias is a member with the other names that agents give it, best first.
type alias struct {
	name  string
	other []string
}

// The members with other names, by section.
var (
	rootCauseAliases  = []alias{{"location", []string{"file", "path"}}, {"description", []string{"explanation", "summary"}}}
	fixAliases        = []alias{{"approach", []string{"description", "summary"}}, {"steps", []string{"actions"}}, {"risks", []string{"caveats"}}, {"testingStrategy", []string{"testing"}}}
	ruledOutAliases   = []alias{{"id", []string{"hypothesisId"}}, {"title", []string{"item", "hypothesis"}}}
	hypothesisAliases = []alias{{"id", []string{"hypothesisId"}}, {"description", []string{"hypothesis", "text"}}}
)

// normalize brings a document into the form that dashboards read. It changes
// three members of the dashboard: status becomes one of three words, progress
// and confidence become numbers in their range. In rootCause, fix, ruledOut and
// hypotheses it adds the usual name of a member that has another one. Everything
// else stays as it was written.
//
// before is the document before the update; nil if it is new. A member that was
// added for another one follows when that one changes.
//
// normalize(before, normalize(before, after)) is normalize(before, after).
// Neither document is changed.
func normalize(before, after map[string]any) (map[string]any, []finding) {
	result := maps.Clone(after)
	var findings []finding
	if dashboard, ok := after["dashboard"].(map[string]any); ok {
		result["dashboard"], findings = normalizeDashboard(dashboard)
	}
	for name, aliases := range map[string][]alias{"rootCause": rootCauseAliases, "fix": fixAliases} {
		if section, ok := after[name].(map[string]any); ok {
			was, _ := before[name].(map[string]any)
			result[name] = fill(was, section, aliases)
		}
	}
	for name, aliases := range map[string][]alias{"ruledOut": ruledOutAliases, "hypotheses": hypothesisAliases} {
		if list, ok := after[name].([]any); ok {
			was, _ := before[name].([]any)
			result[name] = fillList(was, list, aliases)
		}
	}
	return result, findings
}

// normalizeDashboard brings the three members of the dashboard into their form.
func normalizeDashboard(dashboard map[string]any) (map[string]any, []finding) {
	result := maps.Clone(dashboard)
	var findings []finding
	note := func(name, message string) {
		if message != "" {
			findings = append(findings, finding{"/dashboard/" + name, message})
		}
	}
	if word, ok := dashboard["status"].(string); ok {
		status, known := statusWords[plainWord(word)]
		if !known {
			status = statusInProgress
			note("status", fmt.Sprintf("%q is none of in_progress, complete and blocked; it is kept as in_progress", clip(word)))
		}
		result["status"] = status
	}
	for _, member := range []struct {
		name string
		most float64
	}{{"progress", 100}, {"confidence", 10}} {
		if value, ok := dashboard[member.name]; ok {
			number, message := inRange(value, member.most)
			result[member.name] = number
			note(member.name, message)
		}
	}
	return result, findings
}

// separators stand between the words of a status.
var separators = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[\s_-]+`) })

// plainWord is a word without case and with one kind of separator.
func plainWord(word string) string {
	return separators().ReplaceAllString(strings.ToLower(strings.TrimSpace(word)), "_")
}

// quantity is a number as people write it: 85, 85%, ~85 percent, 7/10.
var quantity = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*~?\s*(-?\d+(?:\.\d+)?)\s*(?:%|percent|/\s*(\d+))?\s*$`)
})

// inRange gives a number between 0 and a most of a number or of a text that
// stands for one. Anything else stays. message says what was changed in value.
func inRange(value any, most float64) (number any, message string) {
	var given float64
	number = value
	switch value := value.(type) {
	case json.Number:
		// Out of the range of floats it is an infinity, which will do.
		given, _ = strconv.ParseFloat(string(value), 64)
	case string:
		parts := quantity().FindStringSubmatch(value)
		if parts == nil || (parts[2] != "" && parts[2] != formatFloat(most)) {
			return value, ""
		}
		given, _ = strconv.ParseFloat(parts[1], 64)
		number = json.Number(formatFloat(given))
	default:
		return value, ""
	}
	if kept := min(max(given, 0), most); kept != given {
		return json.Number(formatFloat(kept)), fmt.Sprintf("%v is not between 0 and %v; it is kept as %v", clip(fmt.Sprint(value)), most, kept)
	}
	return number, ""
}

// formatFloat writes a number as JSON has it.
func formatFloat(f float64) string { return string(number(f)) }

// fill adds the members of a section that it has by another name only.
func fill(before, section map[string]any, aliases []alias) map[string]any {
	result := maps.Clone(section)
	for _, a := range aliases {
		value, ok := a.value(section)
		if !ok {
			continue
		}
		current, has := section[a.name]
		if !has {
			result[a.name] = value
			continue
		}
		// Where both said the same, and only the other one has changed, the
		// member is ours and follows.
		said, ok := a.value(before)
		if ok && reflect.DeepEqual(before[a.name], said) && reflect.DeepEqual(current, said) {
			result[a.name] = value
		}
	}
	return result
}

// value gives what a section has by another name.
func (a alias) value(section map[string]any) (any, bool) {
	for _, name := range a.other {
		if value, ok := section[name]; ok && value != nil && value != "" {
			return value, true
		}
	}
	return nil, false
}

// fillList fills the items of a list.
func fillList(before, list []any, aliases []alias) []any {
	result := slices.Clone(list)
	for i, item := range list {
		object, ok := item.(map[string]any)
		if !ok {
			continue
		}
		var was map[string]any
		if i < len(before) {
			was, _ = before[i].(map[string]any)
		}
		result[i] = fill(was, object, aliases)
	}
	return result
}
