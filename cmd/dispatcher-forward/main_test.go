// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// The flags of the Deployment are those of the program, and its grace period covers the lame
// duck, the longest call and 5 s.
func TestDeployment(t *testing.T) {
	text, err := os.ReadFile("../../deploy/forward/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		t.Fatal(err)
	}
	pod := d.Spec.Template.Spec
	s, err := parse(pod.Containers[0].Args, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; grace != s.LameDuck+35*time.Second {
		t.Errorf("the grace period is %v, the lame duck %v", grace, s.LameDuck)
	}
	for _, file := range []string{s.Files.CA, s.Files.ClientCert, s.Files.ClientKey, s.Files.ServingCert, s.Files.ServingKey} {
		mounted := false
		for _, m := range pod.Containers[0].VolumeMounts {
			mounted = mounted || strings.HasPrefix(file, m.MountPath+"/")
		}
		if !mounted {
			t.Errorf("no volume has %s", file)
		}
	}
	if !slices.Equal(pod.Containers[0].Command, []string{"/dispatcher-forward"}) {
		t.Errorf("the command is %q", pod.Containers[0].Command)
	}
}

// required are the flags without a default.
var required = []string{"--url=https://dispatcher", "--client-cert-file=a", "--client-key-file=b", "--cert-file=c", "--key-file=d"}

func TestUsage(t *testing.T) {
	for i, flag := range required {
		var stderr bytes.Buffer
		name, _, _ := strings.Cut(flag, "=")
		if code := run(t.Context(), slices.Delete(slices.Clone(required), i, i+1), &stderr); code != 2 || !strings.Contains(stderr.String(), name+" is required") {
			t.Errorf("without %s: %d, %s", name, code, &stderr)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{append(slices.Clone(required), "more"), 2, `unexpected argument "more"`},
		{[]string{"--nothing"}, 2, "flag provided but not defined"},
		{[]string{"--help"}, 0, "max-requests"},
		{required, 1, "error: c: no such file or directory"},
		{append(slices.Clone(required), "--url=%zz"), 1, "error: --url"},
	} {
		var stderr bytes.Buffer
		if code := run(t.Context(), c.args, &stderr); code != c.code || !strings.Contains(stderr.String(), c.says) {
			t.Errorf("%q: %d, %s", c.args, code, &stderr)
		}
	}
	if _, err := parse(nil, &bytes.Buffer{}); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}
