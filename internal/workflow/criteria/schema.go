package criteria

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// schemaURL is the name of the schema in the compiler, which needs an absolute URL to
// resolve references. It is never fetched.
const schemaURL = "urn:guideway:criterion"

// maxErrors limits the reported errors of one document.
const maxErrors = 20

// schema is a compiled JSON schema. Its patterns share one time limit, so only one check
// runs at a time.
type schema struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	// late is set after the first pattern that reaches its time limit in a check; later
	// patterns are not tried.
	late bool
}

// compileSchema compiles a schema. The default is draft-07; only references inside the
// document are allowed.
func compileSchema(document map[string]any) (*schema, error) {
	s := &schema{}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	compiler.UseLoader(offline{})
	compiler.UseRegexpEngine(s.compileExpression)
	if err := compiler.AddResource(schemaURL, any(document)); err != nil {
		return nil, compileReason(err)
	}
	compiled, err := compiler.Compile(schemaURL)
	if err != nil {
		return nil, compileReason(err)
	}
	s.compiled = compiled
	return s, nil
}

// compileReason returns a compiler error without the internal name of the schema.
func compileReason(err error) error {
	var invalid *jsonschema.SchemaValidationError
	if errors.As(err, &invalid) {
		err = invalid.Err
	}
	var located *jsonschema.ValidationError
	if errors.As(err, &located) {
		return errors.New(describeError(located))
	}
	return errors.New(strings.ReplaceAll(err.Error(), schemaURL, "the schema"))
}

// offline is a loader that refuses every document outside the schema.
type offline struct{}

var _ jsonschema.URLLoader = offline{}

// Load implements jsonschema.URLLoader.
func (offline) Load(url string) (any, error) {
	return nil, fmt.Errorf("references outside the schema are not followed: %s", url)
}

// compileExpression compiles a pattern of a schema; it implements the library's regexp
// engine.
func (s *schema) compileExpression(source string) (jsonschema.Regexp, error) {
	p, err := pattern.Compile(source, "")
	if err != nil {
		return nil, err
	}
	return &expression{pattern: p, source: source, schema: s}, nil
}

// expression runs a pattern within the time limit of its schema.
type expression struct {
	pattern *pattern.Pattern
	source  string
	schema  *schema
}

var _ jsonschema.Regexp = (*expression)(nil)

// MatchString implements jsonschema.Regexp.
func (e *expression) MatchString(s string) bool {
	if e.schema.late {
		return false
	}
	matched, err := e.pattern.Match(s)
	if err != nil {
		e.schema.late = true
	}
	return matched
}

// String implements jsonschema.Regexp.
func (e *expression) String() string { return e.source }

// validateOutput returns the issue of the output, or "". The error is pattern.ErrTooLong,
// or the reason why the output is not JSON.
func (s *schema) validateOutput(output string) (string, error) {
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(output))
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late = false
	err = s.compiled.Validate(document)
	if s.late {
		return "", pattern.ErrTooLong
	}
	var invalid *jsonschema.ValidationError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &invalid):
		return describeError(invalid), nil
	default:
		return "Validation Error at '': " + err.Error(), nil
	}
}

// describeError returns the errors of a document sorted by location, because the library
// visits objects in random order.
func describeError(err *jsonschema.ValidationError) string {
	var errs []string
	for _, unit := range flattenErrors(err.BasicOutput()) {
		if unit.Error == nil {
			continue
		}
		switch unit.Error.Kind.(type) {
		case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
			continue // the causes are reported instead
		}
		errs = append(errs, fmt.Sprintf("Validation Error at '%s': %s", unit.InstanceLocation, unit.Error))
	}
	slices.Sort(errs)
	errs = slices.Compact(errs)
	if more := len(errs) - maxErrors; more > 0 {
		errs = append(errs[:maxErrors], fmt.Sprintf("errors that are not shown: %d", more))
	}
	return strings.Join(errs, "; ")
}

// flattenErrors returns the errors of an output, or the output itself if it has none.
func flattenErrors(out *jsonschema.OutputUnit) []jsonschema.OutputUnit {
	if len(out.Errors) == 0 {
		return []jsonschema.OutputUnit{*out}
	}
	return out.Errors
}

// CheckSchema returns the issue of a text that must be a JSON document of a schema, or "".
// The error means that the schema is invalid or that a pattern took too long.
func CheckSchema(document map[string]any, text string) (issue string, err error) {
	s, err := compileSchema(document)
	if err != nil {
		return "", err
	}
	issue, err = s.validateOutput(text)
	if err != nil && !errors.Is(err, pattern.ErrTooLong) {
		return "the text is not JSON: " + err.Error(), nil
	}
	return issue, err
}
