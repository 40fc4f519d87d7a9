package definition

import "testing"

// TestFunctionPlace checks that all kinds of function definitions are found, but not calls
// or other uses.
func TestFunctionPlace(t *testing.T) {
	t.Parallel()
	const source = `// where() is told of here
function helper(a = (1), b) { return "where(" + this.where() + b; }
export default {
  other() { this.where(1); return this.where; },
  text: "where() {}",
  async where() { return 1; },
  arrow: (x) => x, "quoted"() { return ` + "`${where(2)} where() {`" + `; },
};
const late = function () {};
`
	for name, want := range map[string][2]int{
		"where": {6, 9}, "helper": {2, 10}, "other": {4, 3}, "arrow": {7, 3}, "quoted": {7, 20}, "late": {9, 7}, "none": {}, "x": {},
	} {
		if line, column := FunctionPlace(source, name); [2]int{line, column} != want {
			t.Errorf("FunctionPlace(%s) = %d:%d, want %v", name, line, column, want)
		}
	}
}
