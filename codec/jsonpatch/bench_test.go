// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"fmt"
	"strings"
	"testing"

	v4 "gopkg.in/evanphx/json-patch.v4"
)

// BenchmarkApply decodes and applies a patch to a Pod; the peer is what
// kube-apiserver uses.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{6, 30} {
		doc := benchPod(size << 10)
		for _, operations := range []int{1, 5, 20} {
			patch := benchPatch(operations)
			b.Run(fmt.Sprintf("pod=%dKB/operations=%d/codec=ours", size, operations), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p, err := Decode(patch, DefaultLimits())
					if err != nil {
						b.Fatal(err)
					}
					if _, err := applied(p, doc, DefaultLimits()); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("pod=%dKB/operations=%d/codec=v4", size, operations), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					p, err := v4.DecodePatch(patch)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := p.Apply(doc); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// benchPod returns a Pod of about size bytes in many containers.
func benchPod(size int) []byte {
	var containers []string
	for total := 0; total < size; total += len(containers[0]) + 1 {
		i := len(containers)
		var env []string
		for j := range 8 + i%5 {
			env = append(env, fmt.Sprintf(`{"name":"SETTING_%d_%d","value":"value %d of container %d with \"quotes\""}`, i, j, j*7919, i))
		}
		containers = append(containers, fmt.Sprintf(`{"name":"app-%d","image":"registry.example.com/team-%d/app:v1.%d.3","env":[%s],"resources":{"limits":{"cpu":"%dm","memory":"256Mi"}},"volumeMounts":[{"name":"data","mountPath":"/var/lib/data-%d","readOnly":true}],"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log"}`,
			i, i%7, i, strings.Join(env, ","), 100+i, i))
	}
	return []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"app-6d4b75cb6d-hz2kq","namespace":"team-a","uid":"8f6e2d4c-1b0a-4c3e-9d5f-7a8b9c0d1e2f","labels":{"app":"app","team":"a","pod-template-hash":"6d4b75cb6d"},"annotations":{"checksum/config":"4f53cda18c2baa0c"}},"spec":{"containers":[` +
		strings.Join(containers, ",") + `],"serviceAccountName":"default","restartPolicy":"Always","nodeSelector":{"kubernetes.io/os":"linux"}},"status":{}}`)
}

func benchPatch(operations int) []byte {
	kinds := []string{
		`{"op":"add","path":"/metadata/labels/label-%d","value":"v"}`,
		`{"op":"replace","path":"/spec/containers/0/image","value":"mirror.example.com/app:%d"}`,
		`{"op":"add","path":"/spec/containers/1/env/-","value":{"name":"INJECTED_%d","value":"x"}}`,
		`{"op":"add","path":"/metadata/annotations/injected.example.com~1at-%d","value":"now"}`,
		`{"op":"add","path":"/spec/containers/-","value":{"name":"sidecar-%d","image":"sidecar:1","args":["--a","--b"]}}`,
	}
	patch := make([]string, operations)
	for i := range patch {
		patch[i] = fmt.Sprintf(kinds[i%len(kinds)], i)
	}
	return []byte("[" + strings.Join(patch, ",") + "]")
}
