// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import "testing"

func TestApply(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := applyOurs([]byte(c.doc), []byte(c.patch))
			switch {
			case c.want == "" && err == nil:
				t.Fatalf("accepted, with the result %s", got)
			case c.want != "" && err != nil:
				t.Fatal(err)
			case string(got) != c.want:
				t.Fatalf("got  %s\nwant %s", got, c.want)
			}
			compare(t, []byte(c.doc), []byte(c.patch))
		})
	}
}
