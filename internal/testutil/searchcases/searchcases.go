// Package searchcases has texts and queries with the texts that they find, for the tests of
// all searches: checkpoints and runs, in each store, with and without encryption.
package searchcases

// Texts returns the texts by their names.
func Texts() map[string]string {
	return map[string]string{
		"auth":   "Refactoring the authentication middleware",
		"jwt":    "added validateJWT and parse_rate_limit in tokens.go",
		"japan":  "認証ミドルウェアの改修",
		"mixed":  "JWT認証 of APIv2 for Überprüfung",
		"thai":   "ปรับปรุงการยืนยันตัวตน",
		"parser": "the tests of the parser are failing again",
		"number": "issue 4711 of HTTPServer2 broke SHA256Sum",
	}
}

// Case is a query with the names of the texts that have all of its words.
type Case struct {
	Query string
	Found []string
}

// Cases returns the cases.
func Cases() []Case {
	return []Case{
		{"find checkpoints about auth", []string{"auth"}},
		{"where did we leave the authentication?", []string{"auth"}},
		{"refactored", []string{"auth"}},
		{"middle", []string{"auth"}},
		{"authen", []string{"auth"}},
		{"au", nil},
		{"ware", nil},
		{"jwt validation", []string{"jwt"}},
		{"validateJWT", []string{"jwt"}},
		{"validatejwt", []string{"jwt"}},
		{"rate limits", []string{"jwt"}},
		{"parse_rate_limit", []string{"jwt"}},
		{"jwt", []string{"jwt", "mixed"}},
		{"pars", []string{"jwt", "parser"}},
		{"認証", []string{"japan", "mixed"}},
		{"ミドルウェア", []string{"japan"}},
		{"改修", []string{"japan"}},
		{"修", []string{"japan"}},
		{"証認", nil},
		{"ยืนยัน", []string{"thai"}},
		{"ＪＷＴ uberprufung", []string{"mixed"}},
		{"überprüfung", []string{"mixed"}},
		{"failed test", []string{"parser"}},
		{"fail jwt", nil},
		{"4711", []string{"number"}},
		{"http server", []string{"number"}},
		{"HTTPServer", []string{"number"}},
		{"sha256", []string{"number"}},
		{"zeppelin", nil},
	}
}
