package condition

import (
	"math"
	"slices"
	"strconv"
)

// budget bounds the search of Constant, in evaluated comparisons. A condition
// that needs more is left open, which is always right.
const budget = 200_000

// Constant says whether the condition comes out the same whatever its variables
// are: ok where it always (value true) or never (value false) Holds. It is never
// wrong; where it is not ok, the condition may be constant all the same.
//
// All values that a variable can have fall into finitely many classes that no
// comparison of the condition tells apart: the literals, the numbers between
// them, the texts that spell such numbers, null, booleans, lists, objects. One
// sample of each class stands for it, and the samples of all variables are
// tried until the condition holds and fails once. What depends on more of a
// value than its class (contains, startsWith, endsWith, matches) is free to be
// true or false there.
func (e *Expr) Constant() (value, ok bool) { return e.ConstantIn(nil) }

// Domain is what is known of the values of a variable. The zero value knows
// nothing.
type Domain struct {
	// Type is the JSON name of the type of all values; "" is any.
	Type string
	// Values are all values that there can be; nil means that it is not known.
	Values []any
	// Set says that the variable always has a value.
	Set bool
}

// ConstantIn is Constant where more is known of the variables of a Strict
// condition; a nil function knows nothing. Of a path it is asked as a whole.
func (e *Expr) ConstantIn(domain func(variable string) Domain) (value, ok bool) {
	s := newSearch(e, domain)
	switch {
	case !s.reaches(Yes):
		return false, true
	case !s.reaches(No):
		return true, true
	default:
		return false, false
	}
}

// sample stands for a class of values.
type sample struct {
	value any
	// missing says that there is no value; Strict conditions tell that from
	// null.
	missing bool
	// exact says that the class is this value alone; spelt, that all its values
	// have the same trimmed lower-case text.
	exact, spelt bool
}

// search tries the samples of every variable.
type search struct {
	expr    *Expr
	names   []string
	samples map[string][]sample
	// chosen are the samples of the variables that have one.
	chosen map[string]sample
	// free are the answers of comparisons that a sample leaves open.
	free map[string]Verdict
	// dead are the matches comparisons whose pattern does not compile.
	dead map[*Expr]bool
	// left is the number of comparisons that may still be evaluated.
	left int
}

// newSearch prepares the samples of each variable from its literals.
func newSearch(e *Expr, domain func(string) Domain) *search {
	s := &search{
		expr:    e,
		samples: map[string][]sample{},
		chosen:  map[string]sample{},
		free:    map[string]Verdict{},
		dead:    map[*Expr]bool{},
	}
	literals := map[string][]any{}
	e.comparisons(func(leaf *Expr) {
		if _, ok := literals[leaf.Var]; !ok {
			s.names = append(s.names, leaf.Var)
		}
		literals[leaf.Var] = append(literals[leaf.Var], plain(leaf.Value))
		s.dead[leaf] = leaf.Op == Matches && leaf.pattern() == nil
	})
	for _, name := range s.names {
		switch {
		case e.Mode == Lenient:
			s.samples[name] = samples(literals[name])
		case domain == nil:
			s.samples[name] = strictSamples(literals[name])
		default:
			s.samples[name] = domain(name).samples(literals[name])
		}
	}
	return s
}

// reaches says whether some choice gives the verdict, or may do so: where the
// budget ends it says true.
func (s *search) reaches(want Verdict) bool {
	s.left = budget
	clear(s.chosen)
	clear(s.free)
	return s.try(want)
}

// try extends the choices until the condition is decided.
func (s *search) try(want Verdict) bool {
	if s.left <= 0 {
		return true
	}
	var open *Expr
	v := s.expr.eval(func(leaf *Expr) Verdict {
		v := s.leaf(leaf)
		if v == Unknown && open == nil {
			open = leaf
		}
		return v
	})
	if v != Unknown {
		return v == want
	}
	if _, ok := s.chosen[open.Var]; ok {
		key := freeKey(open)
		defer delete(s.free, key)
		for _, answer := range []Verdict{Yes, No} {
			s.free[key] = answer
			if s.try(want) {
				return true
			}
		}
		return false
	}
	defer delete(s.chosen, open.Var)
	for _, candidate := range s.samples[open.Var] {
		s.chosen[open.Var] = candidate
		if s.try(want) {
			return true
		}
	}
	return false
}

// leaf is the verdict of a comparison under the choices so far.
func (s *search) leaf(e *Expr) Verdict {
	s.left--
	if s.dead[e] {
		return No
	}
	chosen, ok := s.chosen[e.Var]
	if !ok {
		return Unknown
	}
	switch {
	case e.Op == Matches && !chosen.exact,
		e.Op == Contains && !chosen.spelt,
		e.Op == StartsWith && !chosen.spelt,
		e.Op == EndsWith && !chosen.spelt:
		return s.free[freeKey(e)]
	default:
		return verdict(e.test(chosen.value, !chosen.missing))
	}
}

// freeKey names a comparison, so that the same one is answered alike.
func freeKey(e *Expr) string { return e.comparison() }

// samples are one value of each class that comparisons with these literals tell
// apart.
func samples(literals []any) []sample {
	all := []sample{
		{value: nil, exact: true, spelt: true},
		{value: true, exact: true, spelt: true},
		{value: false, exact: true, spelt: true},
		{value: math.NaN(), exact: true, spelt: true},
		{value: []any{}},
		{value: map[string]any{}},
	}
	// Texts that equality knows: those of the literals and of booleans. Only
	// Infinity means a number or not by its case; only blank texts differ in
	// being truthy.
	known := map[string]bool{}
	for _, word := range []string{"true", "1", "yes", "false", "0", "no", ""} {
		known[word] = true
	}
	numbers := []float64{0}
	for _, literal := range literals {
		switch literal := literal.(type) {
		case float64:
			numbers = append(numbers, literal)
		case string:
			known[normal(literal)] = true
			numbers = append(numbers, number(literal))
		}
	}
	for word := range known {
		all = append(all, sample{value: word, spelt: true})
		switch word {
		case "":
			all = append(all, sample{value: " ", spelt: true})
		case "infinity", "+infinity", "-infinity":
			all = append(all, sample{value: capital(word), spelt: true})
		}
	}
	all = append(all, sample{value: unknownWord(known)})
	for _, n := range numberSamples(numbers) {
		all = append(all, n, sample{value: unknownNumber(n.value, known)})
	}
	return all
}

// numberSamples are the breakpoints, and a number in each gap between them.
func numberSamples(breaks []float64) []sample {
	breaks = slices.DeleteFunc(breaks, math.IsNaN)
	slices.Sort(breaks)
	breaks = slices.Compact(breaks)
	var all []sample
	gap := func(f float64) { all = append(all, sample{value: f}) }
	if first := breaks[0]; !math.IsInf(first, -1) {
		gap(math.Nextafter(first, math.Inf(-1)))
	}
	for i, f := range breaks {
		all = append(all, sample{value: f, exact: true, spelt: true})
		if i+1 == len(breaks) {
			break
		}
		// Where no number lies between them, this is the next breakpoint.
		if next := math.Nextafter(f, math.Inf(1)); next < breaks[i+1] {
			gap(next)
		}
	}
	if last := breaks[len(breaks)-1]; !math.IsInf(last, 1) {
		gap(math.Nextafter(last, math.Inf(1)))
	}
	return all
}

// unknownWord is a text that is no number and equals none of the known ones.
func unknownWord(known map[string]bool) string {
	word := "~"
	for known[word] {
		word += "~"
	}
	return word
}

// unknownNumber spells a number so that the text equals none of the known ones.
func unknownNumber(v any, known map[string]bool) string {
	f, _ := v.(float64)
	if math.IsInf(f, 0) {
		return infinite(f, known)
	}
	sign, digits := "", strconv.FormatFloat(math.Abs(f), 'f', -1, 64)
	if f < 0 {
		sign = "-"
	}
	for known[sign+digits] {
		digits = "0" + digits
	}
	return sign + digits
}

// infinite spells an infinite number.
func infinite(f float64, known map[string]bool) string {
	sign, exponent := "", "999"
	if f < 0 {
		sign = "-"
	}
	for known[sign+"1e"+exponent] {
		exponent += "9"
	}
	return sign + "1e" + exponent
}

// capital is the spelling of infinity that is a number.
func capital(word string) string {
	if word[0] == 'i' {
		return "I" + word[1:]
	}
	return word[:1] + "I" + word[2:]
}
