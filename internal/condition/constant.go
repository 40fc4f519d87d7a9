package condition

// Constant says whether the condition comes out the same whatever its variables
// are: ok where it always (value true) or never (value false) holds.
func (e *Expr) Constant() (value, ok bool) {
	v := e.eval(func(*Expr) Verdict { return Unknown })
	return v == Yes, v != Unknown
}
