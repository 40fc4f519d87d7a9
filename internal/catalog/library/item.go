package library

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// Item is a document of a library that loads. It is immutable.
type Item struct {
	Place
	// ID is the id of an activity, a skill or rules. For a guide or a template it is the
	// name of the file without its extension.
	ID string
	// Title is the title for people.
	Title string
	// File is the path of the document for people.
	File string
	// Canonical is an activity, a skill or rules as RFC 8785 JSON.
	Canonical string
	// Text is the text of a guide or a template.
	Text string
	// Skill is set for a skill, Activity for an activity.
	Skill    *phases.Skill
	Activity *phases.Activity
}

// The codes of diagnostics of one document.
const (
	CodeEncoding = "text-encoding"
	CodeRules    = "rules-object"
	CodeFileID   = "file-id-differs"
	CodeLost     = "text-lost"
)

// Parse parses a document. The item is nil if a diagnostic prevents it from being served.
func Parse(place Place, file string, data []byte) (*Item, []guideway.Diagnostic) {
	item := &Item{Place: place, File: file, ID: place.ID(), Title: place.Title()}
	switch place.Kind {
	case KindActivity, KindSkill:
		return parseDocument(item, data)
	case KindRules:
		return parseRules(item, data)
	default:
		return parseText(item, data)
	}
}

// parseDocument parses an activity or a skill.
func parseDocument(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	kind := phases.KindActivity
	if item.Kind == KindSkill {
		kind = phases.KindSkill
	}
	document, found := workflow.CheckAs(item.File, data, workflow.As{Dialect: guideway.DialectPhases, Kind: kind})
	if document == nil {
		return nil, found
	}
	item.ID, item.Canonical, item.Skill, item.Activity = document.ID, document.Canonical, document.Skill, document.Activity
	warn := func(code, fix, format string, args ...any) {
		found = append(found, guideway.Diagnostic{
			Severity: guideway.SeverityWarning, Code: code, File: item.File, Message: fmt.Sprintf(format, args...), Fix: fix,
		})
	}
	if item.ID != item.Name {
		warn(CodeFileID, fmt.Sprintf("name the file %s-%s, or change the id", item.Digits, item.ID),
			"the %s has the id %q but its file is named %q; tools use the id", item.Kind, item.ID, item.Path)
	}
	for _, mark := range []string{"|", ">"} {
		if strings.Contains(item.Canonical, `:"`+mark+`"`) {
			warn(CodeLost, "rewrite the text, or copy it from the original, unconverted file",
				"a field of the %s has only the text %q: a conversion from YAML may have lost its multi-line text", item.Kind, mark)
		}
	}
	return item, found
}

// parseRules parses the rules for all workflows, which may be any object.
func parseRules(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	root, found := doc.Parse(item.File, data, doc.Limits{})
	if root == nil {
		return nil, found
	}
	if root.Kind != doc.Object {
		return nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeRules, File: item.File, Line: root.Line, Column: root.Column,
			Message: "The rules must be an object, but they are " + shape.Describe(root) + ".", Fix: "write the rules as one object",
		}}
	}
	item.Canonical = string(doc.Canonical(root))
	return item, nil
}

// parseText checks that a text is UTF-8, and removes its byte order mark.
func parseText(item *Item, data []byte) (*Item, []guideway.Diagnostic) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeEncoding, File: item.File,
			Message: fmt.Sprintf("the %s is not UTF-8 text, or contains a NUL character", item.Kind), Fix: "save the file as UTF-8 without NUL characters",
		}}
	}
	item.Text = string(data)
	return item, nil
}
