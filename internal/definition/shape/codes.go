package shape

// The codes of findings on the shape of a document. The published schemas make
// these findings too, but for the last two.
const (
	CodeRequired   = "field-missing"
	CodeUnexpected = "field-unknown"
	CodeType       = "field-type"
	CodeLength     = "text-length"
	CodePattern    = "text-pattern"
	CodeEnum       = "value-unknown"
	CodeRange      = "number-bounds"
	CodeUnique     = "list-repeats"
	CodeEmptyList  = "list-empty"
	// CodeObject is of a document that is no object.
	CodeObject = "definition-object"
	// CodeMore ends a list of findings that was cut.
	CodeMore = "more-findings"
)
