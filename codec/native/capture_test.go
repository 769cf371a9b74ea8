// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/admission-dispatcher/dispatcher/codec"
	"github.com/admission-dispatcher/dispatcher/codec/native"
)

var update = flag.Bool("update", false, "rewrite testdata/capture.txt")

// TestCapture holds what a webhook gets for the reference review in each form: its
// size, how it begins, and how its object does.
func TestCapture(t *testing.T) {
	const file = "testdata/capture.txt"
	got := capture(t)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-update rewrites it):\n%s", file, diff)
	}
}

func capture(t *testing.T) string {
	const head, objectHead = 96, 64
	forms := codec.Forms{Review: referenceReview(t), Transcoder: native.New()}
	defer forms.Release()
	var out strings.Builder
	for _, e := range []codec.Encoding{codec.JSON, codec.Protobuf, codec.ProtobufNative} {
		body := forms.Get(codec.Form{Version: codec.V1, Encoding: e}).Bytes()
		object := newWebhook(t).review(t, body).Request.Object.Raw
		fmt.Fprintf(&out, "%s: %d bytes\n%s", e, len(body), hex.Dump(body[:head]))
		fmt.Fprintf(&out, "its object: %d bytes\n%s\n", len(object), hex.Dump(object[:objectHead]))
	}
	return out.String()
}
