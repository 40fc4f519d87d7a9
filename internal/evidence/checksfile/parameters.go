package checksfile

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// maxValue is the maximum number of bytes of the value of a parameter.
const maxValue = 1000

func (p *parser) readParameters(at shape.Place) []Parameter {
	if !p.Open(at) {
		return nil
	}
	if n := len(at.Node.Members); n > maxListed {
		p.Errorf(at, shape.CodeRange, "remove parameters", "Field '%s' %s has %d parameters; at most %d are allowed.", at.Name, at.Where, n, maxListed)
		return nil
	}
	var out []Parameter
	for i := range at.Node.Members {
		key := at.Member(i)
		if !parameterName().MatchString(key.Name) {
			p.Errorf(key, CodeName, "use letters, digits and underscores, and begin with a lower-case letter", "%s is not a valid parameter name.", shape.Quote(key.Name))
		}
		out = append(out, p.readParameter(at.Key(key.Name).In("in the parameter "+shape.Quote(key.Name)), key.Name))
	}
	return out
}

func (p *parser) readParameter(at shape.Place, name string) Parameter {
	out := Parameter{Name: name}
	if !p.Object(at, "description", "default", "pattern") {
		return out
	}
	out.Description = p.Text(at.Key("description"), 0, maxDescription)
	out.Pattern = p.readPattern(at.Key("pattern"))
	if value := at.Key("default"); value.Node != nil {
		text := p.Text(value, 0, 0)
		out.Default = &text
		if err := out.checkValue(text); err != nil && value.Node.Kind == doc.String {
			p.Errorf(value, CodeDefault, guideway.ErrorFix(err), "Field 'default' %s cannot be used: %s.", at.Where, err.Error())
		}
	}
	return out
}

// checkPlaceholders reports placeholders without a parameter, and parameters that no
// argument uses.
func (p *parser) checkPlaceholders(at shape.Place, c *Check) {
	names := lists.Map(c.Parameters, func(p Parameter) string { return p.Name })
	used := map[string]bool{}
	for i, argument := range c.Command.Argv {
		item := at.Key("argv").Index(i)
		for _, part := range template.Parse(argument) {
			name := ""
			if len(part.Path) == 1 && !part.Added {
				name = part.Path[0]
			}
			switch {
			case !part.Expr || isLiteral(part.Text):
			case i == 0:
				p.Errorf(item, CodePlaceholder, "name the program, and pass values only as its arguments", "Field '%s' %s is the program; it cannot be a parameter.", item.Name, at.Where)
			case !slices.Contains(names, name):
				p.Errorf(item, CodePlaceholder, p.Suggest(name, names, "declare the parameter below \"parameters\""), "Field '%s' %s uses %s, which is not a parameter of the check.", item.Name, at.Where, shape.Quote(part.Text))
			}
			used[name] = true
		}
	}
	p.checkScript(at.Key("argv"), c.Command.Argv)
	for _, name := range names {
		if !used[name] {
			p.Warnf(at.Key("parameters").Key(name), CodeUnused, "use {{"+name+"}} in an argument, or remove the parameter", "No argument %s uses the parameter %s.", at.Where, shape.Quote(name))
		}
	}
}

// checkScript reports a parameter in the script of an interpreter or in the name of an
// option.
func (p *parser) checkScript(argv shape.Place, words []string) {
	if i, caller := criteria.VariableInProgram(words); caller != "" {
		p.Errorf(argv.Index(i), CodePlaceholder, criteria.FixForCaller(caller),
			"Field '%s' %s contains a parameter, but %s can run its arguments as commands.", argv.Index(i).Name, argv.Where, caller)
	} else if i > 0 {
		p.Errorf(argv.Index(i), CodePlaceholder, "write the script out, and pass the value as an argument of the script",
			"Field '%s' %s would let a parameter decide which script runs.", argv.Index(i).Name, argv.Where)
	} else if i := criteria.VariableInOption(words); i > 0 {
		p.Errorf(argv.Index(i), CodePlaceholder, "write the name of the option out, such as --run={{name}}",
			"Field '%s' %s would let a parameter decide which option the program gets.", argv.Index(i).Name, argv.Where)
	}
}

// isLiteral reports whether a text in braces is a template of the program, such as
// {{.Version}}.
func isLiteral(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "{{"), " "), ".")
}

// FillParameters returns the command of the check with the given values and the defaults of
// its parameters. A value is data: it is one argument or a part of one, and cannot be an
// option.
func (c *Check) FillParameters(with map[string]string) (*criteria.CheckRule, error) {
	values := map[string]any{}
	for i := range c.Parameters {
		one := &c.Parameters[i]
		value, ok := with[one.Name]
		if !ok {
			if one.Default == nil {
				return nil, guideway.Errorf(guideway.CodeInvalid, "the check %s needs the parameter %s", c.Name, one.Name).
					WithFix("set with.%s in the rule of the workflow, or a default in %s", one.Name, Path)
			}
			value = *one.Default
		}
		if err := one.checkValue(value); err != nil {
			return nil, guideway.Errorf(guideway.ErrorCode(err), "the parameter %s of the check %s: %w", one.Name, c.Name, err).WithFix("%s", guideway.ErrorFix(err))
		}
		values[one.Name] = value
	}
	for name := range with {
		if _, ok := values[name]; !ok {
			return nil, c.unknownParameter(name)
		}
	}
	rule := c.Command
	rule.Argv = make([]string, len(c.Command.Argv))
	for i, argument := range c.Command.Argv {
		rule.Argv[i] = template.Render(template.Parse(argument), func(name string) (any, bool) {
			value, ok := values[name]
			return value, ok
		})
	}
	return &rule, nil
}

func (c *Check) unknownParameter(name string) error {
	names := lists.Map(c.Parameters, func(p Parameter) string { return p.Name })
	err := guideway.Errorf(guideway.CodeInvalid, "the check %s has no parameter %q", c.Name, name)
	switch guess := spelling.Closest(name, names); {
	case guess != "":
		return err.WithFix("did you mean %s?", guess)
	case len(names) > 0:
		return err.WithFix("use one of: %s", strings.Join(names, ", "))
	}
	return err.WithFix("remove the parameter from the rule: the check %s has no parameters", c.Name)
}

// checkValue returns an error if a value cannot be passed as the parameter.
func (p *Parameter) checkValue(value string) error {
	invalid := func(format string, args ...any) *guideway.Error {
		return guideway.Errorf(guideway.CodeInvalid, "the value %q "+format, append([]any{shortenValue(value)}, args...)...)
	}
	switch {
	case len(value) > maxValue:
		return invalid("has more than %d bytes", maxValue).WithFix("shorten the value")
	case strings.HasPrefix(value, "-"):
		return invalid(`begins with "-", so that a program could read it as an option`).WithFix("pass a value without a leading hyphen")
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return invalid("has a line break or another control character").WithFix("pass a value of one line")
	case p.Pattern == "":
		return nil
	}
	compiled, err := pattern.Compile(fmt.Sprintf("^(?:%s)$", p.Pattern), "")
	if err != nil {
		return nil // reported at the pattern
	}
	ok, err := compiled.Match(value)
	if err != nil {
		return invalid("took longer than %v to compare with the pattern %s of the parameter", pattern.Limit, p.Pattern).WithFix("pass a shorter value, or simplify the pattern in %s", Path)
	}
	if !ok {
		return invalid("does not match the pattern %s of the parameter", p.Pattern).WithFix("pass a value that matches %s", p.Pattern)
	}
	return nil
}

func shortenValue(value string) string {
	if len(value) > 100 {
		return value[:100] + "..."
	}
	return value
}
