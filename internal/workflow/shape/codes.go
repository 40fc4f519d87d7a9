package shape

// The codes of diagnostics about the shape of a document. The published schemas report the
// same errors, except for CodeObject and CodeMore.
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
	// CodeObject reports a document that is not an object.
	CodeObject = "definition-object"
	// CodeMore ends a truncated list of diagnostics.
	CodeMore = "more-findings"
)
