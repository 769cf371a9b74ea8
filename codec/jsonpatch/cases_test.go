// SPDX-License-Identifier: Apache-2.0

package jsonpatch

// cases are documents and patches with what becomes of them: want is the exact
// result, empty if the patch is refused.
var cases = []struct{ name, doc, patch, want string }{
	// RFC 6902, appendix A.
	{"RFC A.1 add an object member", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux"}]`, `{"foo":"bar","baz":"qux"}`},
	{"RFC A.2 add an array element", `{"foo":["bar","baz"]}`, `[{"op":"add","path":"/foo/1","value":"qux"}]`, `{"foo":["bar","qux","baz"]}`},
	{"RFC A.3 remove an object member", `{"baz":"qux","foo":"bar"}`, `[{"op":"remove","path":"/baz"}]`, `{"foo":"bar"}`},
	{"RFC A.4 remove an array element", `{"foo":["bar","qux","baz"]}`, `[{"op":"remove","path":"/foo/1"}]`, `{"foo":["bar","baz"]}`},
	{"RFC A.5 replace a value", `{"baz":"qux","foo":"bar"}`, `[{"op":"replace","path":"/baz","value":"boo"}]`, `{"baz":"boo","foo":"bar"}`},
	{"RFC A.6 move a value", `{"foo":{"bar":"baz","waldo":"fred"},"qux":{"corge":"grault"}}`, `[{"op":"move","from":"/foo/waldo","path":"/qux/thud"}]`, `{"foo":{"bar":"baz"},"qux":{"corge":"grault","thud":"fred"}}`},
	{"RFC A.7 move an array element", `{"foo":["all","grass","cows","eat"]}`, `[{"op":"move","from":"/foo/1","path":"/foo/3"}]`, `{"foo":["all","cows","eat","grass"]}`},
	{"RFC A.8 test a value", `{"baz":"qux","foo":["a",2,"c"]}`, `[{"op":"test","path":"/baz","value":"qux"},{"op":"test","path":"/foo/1","value":2}]`, `{"baz":"qux","foo":["a",2,"c"]}`},
	{"RFC A.9 test a value, error", `{"baz":"qux"}`, `[{"op":"test","path":"/baz","value":"bar"}]`, ""},
	{"RFC A.10 add a nested member object", `{"foo":"bar"}`, `[{"op":"add","path":"/child","value":{"grandchild":{}}}]`, `{"foo":"bar","child":{"grandchild":{}}}`},
	{"RFC A.11 ignore unrecognized fields", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","xyz":123}]`, `{"foo":"bar","baz":"qux"}`},
	{"RFC A.12 add to a nonexistent target", `{"foo":"bar"}`, `[{"op":"add","path":"/baz/bat","value":"qux"}]`, ""},
	{"RFC A.13 invalid patch document", `{"foo":"bar"}`, `[{"op":"add","path":"/baz","value":"qux","op":"remove"}]`, ""},
	{"RFC A.14 escape ordering", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":10}]`, `{"/":9,"~1":10}`},
	{"RFC A.15 compare strings and numbers", `{"/":9,"~1":10}`, `[{"op":"test","path":"/~01","value":"10"}]`, ""},
	{"RFC A.16 add an array value", `{"foo":["bar"]}`, `[{"op":"add","path":"/foo/-","value":["abc","def"]}]`, `{"foo":["bar",["abc","def"]]}`},

	// The document keeps what is not touched.
	{"numbers, escapes and order are kept", `{"z":123456789012345678901234567890,"a":1.0,"e":1e3,"n":-0,"s":"\u0041\/<","m":{"k":1}}`, `[{"op":"add","path":"/m/l","value":2.50}]`, `{"z":123456789012345678901234567890,"a":1.0,"e":1e3,"n":-0,"s":"\u0041\/<","m":{"k":1,"l":2.50}}`},
	{"white space in untouched values is kept", " { \"a\" : { \"b\" : [ 1 ,\t2 ] } ,\r\n\"c\" : 0 } ", `[{"op":"remove","path":"/c"}]`, `{"a":{ "b" : [ 1 ,	2 ] }}`},
	{"escaped keys keep their spelling", `{"\u0061":{"\u0062":1}}`, `[{"op":"add","path":"/a/b","value":2},{"op":"add","path":"/a/é\"","value":3}]`, `{"\u0061":{"\u0062":2,"é\"":3}}`},
	{"duplicate keys where no pointer goes are kept", `{"a":{"b":1,"b":2},"c":0}`, `[{"op":"remove","path":"/c"}]`, `{"a":{"b":1,"b":2}}`},
	{"an empty patch", `{"a":1}`, `[]`, `{"a":1}`},
	{"null as an empty patch", `{"a":1}`, ` null `, `{"a":1}`},

	// Pointers as v4 reads them.
	{"text before the first slash is ignored", `{"a":1}`, `[{"op":"remove","path":"x/a"}]`, `{}`},
	{"a pointer without a slash", `{"a":1}`, `[{"op":"remove","path":"a"}]`, ""},
	{"empty reference tokens", `{"":{"":1}}`, `[{"op":"replace","path":"//","value":2}]`, `{"":{"":2}}`},
	{"escaped slash and tilde", `{"a/b":{"~":1}}`, `[{"op":"replace","path":"/a~1b/~0","value":2}]`, `{"a/b":{"~":2}}`},
	{"a lone tilde is itself", `{"~":1,"~2":2}`, `[{"op":"remove","path":"/~"},{"op":"remove","path":"/~2"}]`, `{}`},
	{"a pointer with JSON escapes", `{"a":1}`, `[{"op":"remove","path":"\u002fa"}]`, `{}`},
	{"through a scalar", `{"a":1}`, `[{"op":"add","path":"/a/b","value":1}]`, ""},
	{"through null", `{"a":null}`, `[{"op":"add","path":"/a/b","value":1}]`, ""},
	{"through an array by a word", `{"a":[{}]}`, `[{"op":"add","path":"/a/b/c","value":1}]`, ""},

	// Array indices as v4 reads them.
	{"a negative index counts from the end", `[1,2,3]`, `[{"op":"remove","path":"/-1"}]`, `[1,2]`},
	{"adding at -1 appends", `[1,2]`, `[{"op":"add","path":"/-1","value":3}]`, `[1,2,3]`},
	{"adding before the first by a negative index", `[1,2]`, `[{"op":"add","path":"/-3","value":0}]`, `[0,1,2]`},
	{"a negative index out of range", `[1,2]`, `[{"op":"remove","path":"/-3"}]`, ""},
	{"a sign and leading zeros", `[1,2]`, `[{"op":"replace","path":"/+01","value":3},{"op":"replace","path":"/-0","value":0}]`, `[0,3]`},
	{"an index behind the end", `[1,2]`, `[{"op":"add","path":"/3","value":3}]`, ""},
	{"an index at the end", `[1,2]`, `[{"op":"add","path":"/2","value":3}]`, `[1,2,3]`},
	{"an index beyond 64 bits", `[1]`, `[{"op":"remove","path":"/99999999999999999999"}]`, ""},
	{"a dash only appends", `[1]`, `[{"op":"replace","path":"/-","value":2}]`, ""},
	{"a word as an index", `[1]`, `[{"op":"add","path":"/x","value":2}]`, ""},
	{"a nested array", `{"a":[[1],[2]]}`, `[{"op":"add","path":"/a/-1/0","value":3}]`, `{"a":[[1],[3,2]]}`},

	// The whole document.
	{"adding the root", `{"a":1}`, `[{"op":"add","path":"","value":{}}]`, ""},
	{"removing the root", `{"a":1}`, `[{"op":"remove","path":""}]`, ""},
	{"replacing the root", `{"a":1}`, `[{"op":"replace","path":"","value":[{"b":1.0}]},{"op":"add","path":"/0/c","value":2}]`, `[{"b":1.0,"c":2}]`},
	{"replacing the root by a scalar", `{"a":1}`, `[{"op":"replace","path":"","value":"x"}]`, ""},
	{"replacing the root by null", `{"a":1}`, `[{"op":"replace","path":"","value":null}]`, ""},
	{"replacing the root by nothing", `{"a":1}`, `[{"op":"replace","path":""}]`, ""},
	{"testing the root", `{"a":1,"b":[2]}`, `[{"op":"test","path":"","value":{"b":[2],"a":1}}]`, `{"a":1,"b":[2]}`},
	{"testing the root for nothing", `{}`, `[{"op":"test","path":""}]`, ""},
	{"copying the root", `{"a":1}`, `[{"op":"copy","from":"","path":"/b"}]`, ""},
	{"moving to the root", `{"a":{}}`, `[{"op":"move","from":"/a","path":""}]`, ""},
	{"a document that is a scalar", `1`, `[]`, ""},
	{"a document behind white space", " {}", `[]`, `{}`},
	{"an array behind white space", " []", `[]`, ""},
	{"a document that is no JSON", `{"a":1}}`, `[]`, ""},

	// Missing values.
	{"removing a missing member", `{}`, `[{"op":"remove","path":"/a"}]`, ""},
	{"replacing a missing member adds it", `{}`, `[{"op":"replace","path":"/a","value":1}]`, `{"a":1}`},
	{"copying a missing member copies null", `{}`, `[{"op":"copy","from":"/a","path":"/b"}]`, `{"b":null}`},
	{"moving a missing member", `{}`, `[{"op":"move","from":"/a","path":"/b"}]`, ""},
	{"testing a missing member for null", `{}`, `[{"op":"test","path":"/a","value":null}]`, `{}`},
	{"testing a missing member for nothing", `{}`, `[{"op":"test","path":"/a"}]`, `{}`},
	{"testing a missing member", `{}`, `[{"op":"test","path":"/a","value":1}]`, ""},
	{"testing a member for nothing", `{"a":1}`, `[{"op":"test","path":"/a"}]`, ""},
	{"testing a missing parent for null", `{}`, `[{"op":"test","path":"/a/b","value":null}]`, ""},
	{"testing a missing element for null", `[]`, `[{"op":"test","path":"/0","value":null}]`, ""},
	{"adding without a value adds null", `{}`, `[{"op":"add","path":"/a"}]`, `{"a":null}`},

	// Nulls, of which v4 knows three.
	{"a null of the document", `{"a":null}`, `[{"op":"test","path":"/a","value":null},{"op":"test","path":"/a"}]`, `{"a":null}`},
	{"an added null", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"test","path":"/a","value":null}]`, `{"a":null}`},
	{"an added null tested for nothing", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"test","path":"/a"}]`, ""},
	{"an added null in a larger value", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"test","path":"","value":{"a":null}}]`, ""},
	{"an added null moved", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"move","from":"/a","path":"/b"},{"op":"test","path":"/b"}]`, ""},
	{"an added null copied with its parent", `{"p":{}}`, `[{"op":"add","path":"/p/a","value":null},{"op":"copy","from":"/p","path":"/q"},{"op":"test","path":"/q/a"}]`, `{"p":{"a":null},"q":{"a":null}}`},
	{"an added null copied", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"}]`, `{"a":null,"b":null}`},
	{"an added null copied and tested", `{}`, `[{"op":"add","path":"/a","value":null},{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":null}]`, ""},
	{"a null of the document copied and tested", `{"a":null}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":null}]`, `{"a":null,"b":null}`},
	{"a member that is null in a larger value", `{"a":{"b":null}}`, `[{"op":"test","path":"/a","value":{"b":null}}]`, `{"a":{"b":null}}`},
	{"an element that is null in a larger value", `{"a":[null]}`, `[{"op":"test","path":"/a","value":[null]}]`, ""},
	{"an element that is null", `{"a":[null]}`, `[{"op":"test","path":"/a/0","value":null}]`, `{"a":[null]}`},
	{"null is not empty", `{"a":{}}`, `[{"op":"test","path":"/a","value":null}]`, ""},
	{"false is not null", `{"a":false}`, `[{"op":"test","path":"/a","value":null}]`, ""},

	// Equality.
	{"objects in any order", `{"a":{"x":1,"y":[true,{"z":"s"}]}}`, `[{"op":"test","path":"/a","value":{ "y" : [ true , {"z":"s"} ], "x" : 1 }}]`, `{"a":{"x":1,"y":[true,{"z":"s"}]}}`},
	{"numbers by their spelling", `{"a":1.0}`, `[{"op":"test","path":"/a","value":1}]`, ""},
	{"strings by their spelling", `{"a":"A"}`, `[{"op":"test","path":"/a","value":"\u0041"}]`, ""},
	{"keys by their meaning", `{"a":{"A":1}}`, `[{"op":"test","path":"/a","value":{"\u0041":1}}]`, `{"a":{"A":1}}`},
	{"arrays in their order", `{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[2,1]}]`, ""},
	{"a shorter array", `{"a":[1,2]}`, `[{"op":"test","path":"/a","value":[1]}]`, ""},
	{"another key", `{"a":{"x":1}}`, `[{"op":"test","path":"/a","value":{"y":1}}]`, ""},
	{"an object is no array", `{"a":{}}`, `[{"op":"test","path":"/a","value":[]}]`, ""},
	{"an array is no object", `{"a":[]}`, `[{"op":"test","path":"/a","value":{}}]`, ""},
	{"a scalar is no object", `{"a":1}`, `[{"op":"test","path":"/a","value":{}}]`, ""},
	{"a copy is escaped as in HTML", `{"a":"<"}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":"\u003c"}]`, `{"a":"<","b":"\u003c"}`},
	{"a copy has not the spelling of its source", `{"a":"<"}`, `[{"op":"copy","from":"/a","path":"/b"},{"op":"test","path":"/b","value":"<"}]`, ""},
	{"a removed member no longer counts", `{"a":{"x":1,"y":2}}`, `[{"op":"remove","path":"/a/x"},{"op":"test","path":"/a","value":{"y":2}}]`, `{"a":{"y":2}}`},

	// Copies and moves.
	{"copying into itself", `{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/a/c"}]`, `{"a":{"b":1,"c":{"b":1}}}`},
	{"moving into itself", `{"a":{"b":1}}`, `[{"op":"move","from":"/a","path":"/a/c"}]`, ""},
	{"moving onto itself", `{"a":{"b":1},"c":2}`, `[{"op":"move","from":"/a","path":"/a"}]`, `{"c":2,"a":{"b":1}}`},
	{"a copy is independent", `{"a":{"b":1}}`, `[{"op":"copy","from":"/a","path":"/c"},{"op":"replace","path":"/c/b","value":2}]`, `{"a":{"b":1},"c":{"b":2}}`},
	{"a copy of what was changed", `{"a":{"b":1}}`, `[{"op":"replace","path":"/a/b","value":2},{"op":"copy","from":"/a","path":"/c"}]`, `{"a":{"b":2},"c":{"b":2}}`},
	{"indices count after the removal", `[1,2,3]`, `[{"op":"move","from":"/0","path":"/2"}]`, `[2,3,1]`},
	{"moving over a member", `{"a":1,"b":2}`, `[{"op":"move","from":"/a","path":"/b"}]`, `{"b":1}`},
	{"copying without from", `{"a":1}`, `[{"op":"copy","path":"/b"}]`, ""},
	{"moving to a missing parent", `{"a":1}`, `[{"op":"move","from":"/a","path":"/b/c"}]`, ""},

	// Operations that are none.
	{"an unknown operation", `{}`, `[{"op":"merge","path":"/a"}]`, ""},
	{"an operation in capitals", `{}`, `[{"op":"ADD","path":"/a","value":1}]`, ""},
	{"an operation spelled with escapes", `{}`, `[{"op":"\u0061dd","path":"/a","value":1}]`, `{"a":1}`},
	{"an operation that is a number", `{}`, `[{"op":1,"path":"/a","value":1}]`, ""},
	{"no operation", `{}`, `[{"path":"/a","value":1}]`, ""},
	{"null as an operation", `{}`, `[null]`, ""},
	{"no path", `{}`, `[{"op":"add","value":1}]`, ""},
	{"null as a path", `{}`, `[{"op":"add","path":null,"value":1}]`, ""},
	{"a path that is a number", `{}`, `[{"op":"add","path":1,"value":1}]`, ""},
	{"an operation that is an array", `{}`, `[[]]`, ""},
	{"a patch that is an object", `{}`, `{"op":"add","path":"/a","value":1}`, ""},
	{"a merge patch", `{}`, `{"a":1}`, ""},
	{"a patch that is a string", `{}`, `"[]"`, ""},
	{"an empty patch document", `{}`, ``, ""},
	{"two patches", `{}`, `[][]`, ""},

	// Stricter than v4.
	{"duplicate path", `{}`, `[{"op":"add","path":"/a","path":"/b","value":1}]`, ""},
	{"duplicate value", `{}`, `[{"op":"add","path":"/a","value":1,"value":2}]`, ""},
	{"duplicate from spelled with escapes", `{"a":1}`, `[{"op":"copy","from":"/a","\u0066rom":"/a","path":"/b"}]`, ""},
	{"a case variant", `{}`, `[{"op":"add","path":"/a","Path":"/b","value":1}]`, ""},
	{"duplicate unknown fields", `{}`, `[{"op":"add","path":"/a","value":1,"x":1,"x":2}]`, `{"a":1}`},
	{"duplicate keys at the root", `{"a":1,"a":2}`, `[{"op":"add","path":"/b","value":1}]`, ""},
	{"duplicate keys where a pointer goes", `{"a":{"b":1,"\u0062":2}}`, `[{"op":"add","path":"/a/c","value":1}]`, ""},
	{"duplicate keys that a test compares", `{"a":{"b":1}}`, `[{"op":"test","path":"/a","value":{"b":2,"b":1}}]`, ""},
	{"invalid UTF-8 in a patch", `{}`, "[{\"op\":\"add\",\"path\":\"/a\",\"value\":\"\xff\"}]", ""},
	{"invalid UTF-8 in a document", "{\"a\":\"\xff\"}", `[]`, ""},
}

// scanned are seeds for the scanner, valid and not.
var scanned = []string{
	`{}`, `[]`, `{"a":[1,{"b":null}],"c":"\u00e9\n"}`, ` [ true , false , null ] `, `"`, `"\x"`, `"\u12g4"`, "\"\x01\"",
	`-`, `-0`, `01`, `1.`, `1.5e+10`, `1e`, `.5`, `+1`, `[1,]`, `{"a":1,}`, `{"a"}`, `{1:2}`, `[1 2]`, `{"a":1]`, `nul`, `NaN`, ``, "\ufeff{}",
}
