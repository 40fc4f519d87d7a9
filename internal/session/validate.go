package session

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxFindings bounds what one update adds to the log.
const maxFindings = 50

// validate says what in a document would confuse who looks at it. It is written
// to the log and blocks nothing. The document is a normalized one.
func validate(workflow string, data map[string]any) []finding {
	v := validator{}
	v.dashboard(data)
	for _, name := range []string{"rootCause", "fix"} {
		if value := data[name]; value != nil && !isObject(value) {
			v.note("/"+name, "it is %s; dashboards read an object", kindOf(value))
		}
	}
	v.items(data, "ruledOut", func(string, map[string]any) {})
	v.items(data, "hypotheses", func(pointer string, item map[string]any) {
		v.word(pointer+"/status", item["status"], "active", "confirmed", "ruled_out")
	})
	// The seed asks more of these documents, since their workflow fills them.
	if strings.Contains(workflow, "bug-investigation") {
		v.investigation(data)
	}
	return v.findings
}

// validator collects findings.
type validator struct {
	findings []finding
}

func (v *validator) note(pointer, format string, args ...any) {
	if len(v.findings) < maxFindings {
		v.findings = append(v.findings, finding{pointer, fmt.Sprintf(format, args...)})
	}
}

// dashboard checks what is read of every document.
func (v *validator) dashboard(data map[string]any) {
	value := data["dashboard"]
	if value == nil {
		return
	}
	dashboard, ok := value.(map[string]any)
	if !ok {
		v.note("/dashboard", "it is %s; dashboards read an object", kindOf(value))
		return
	}
	v.word("/dashboard/status", dashboard["status"], statusInProgress, statusComplete, statusBlocked)
	for name, most := range map[string]int{"progress": 100, "confidence": 10} {
		if value := dashboard[name]; value != nil {
			if _, ok := value.(json.Number); !ok {
				v.note("/dashboard/"+name, "it is %s, %v; dashboards read a number from 0 to %d", kindOf(value), clip(fmt.Sprint(value)), most)
			}
		}
	}
	for _, name := range []string{"startedAt", "completedAt"} {
		if value := dashboard[name]; value != nil {
			text, _ := value.(string)
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				v.note("/dashboard/"+name, "%v is not a time such as 2026-01-31T12:00:00Z", clip(fmt.Sprint(value)))
			}
		}
	}
}

// word checks that a value, if there is one, is one of some words.
func (v *validator) word(pointer string, value any, allowed ...string) {
	if value == nil {
		return
	}
	if word, ok := value.(string); !ok || !slices.Contains(allowed, word) {
		v.note(pointer, "%v is none of %s", clip(fmt.Sprint(value)), strings.Join(allowed, ", "))
	}
}

// items checks a list of objects.
func (v *validator) items(data map[string]any, name string, check func(pointer string, item map[string]any)) {
	value := data[name]
	list, ok := value.([]any)
	if !ok && value != nil {
		v.note("/"+name, "it is %s; dashboards read a list of objects", kindOf(value))
	}
	for i, item := range list {
		pointer := fmt.Sprintf("/%s/%d", name, i)
		if object, ok := item.(map[string]any); ok {
			check(pointer, object)
		} else {
			v.note(pointer, "it is %s; dashboards read an object", kindOf(item))
		}
	}
}

// investigation checks what the seed asks of a bug investigation.
func (v *validator) investigation(data map[string]any) {
	dashboard, _ := data["dashboard"].(map[string]any)
	for _, name := range []string{"status", "progress", "confidence"} {
		if dashboard[name] == nil {
			v.note("/dashboard/"+name, "it is missing, and a bug investigation should have it")
		}
	}
	if dashboard["status"] == statusComplete && data["rootCause"] == nil {
		v.note("/rootCause", "the investigation is complete, but no root cause is given")
	}
}

// isObject tells whether a value is an object.
func isObject(value any) bool {
	_, ok := value.(map[string]any)
	return ok
}

// added gives the findings that were not there before: a log that repeats
// itself at every update is not read.
func added(before, after []finding) []finding {
	var fresh []finding
	for _, f := range after {
		if !slices.Contains(before, f) {
			fresh = append(fresh, f)
		}
	}
	slices.SortFunc(fresh, func(a, b finding) int {
		return strings.Compare(a.pointer+"\x00"+a.message, b.pointer+"\x00"+b.message)
	})
	return fresh
}
