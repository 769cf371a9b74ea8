// SPDX-License-Identifier: Apache-2.0

package payload

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Pod returns a Pod of about 1.8 KB for each container. Variants differ in their
// words.
func Pod(containers int, variant uint64) map[string]any {
	draw := rand.New(rand.NewPCG(1, 2+variant))
	return map[string]any{
		"kind": "Pod", "apiVersion": "v1",
		"metadata": map[string]any{
			"name": "web-7d4b9c-x2x4z", "generateName": "web-7d4b9c-", "namespace": "shop", "creationTimestamp": nil,
			"labels":          map[string]any{"app": "web", "pod-template-hash": "7d4b9c", "app.kubernetes.io/part-of": "shop"},
			"annotations":     map[string]any{"checksum/config": word(draw, 64), "note": "line one\nline \"two\""},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7d4b9c", "uid": "c9f8", "controller": true}},
			"managedFields":   []any{map[string]any{"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": managedFields(draw)}},
		},
		"spec":   podSpec(draw, containers),
		"status": map[string]any{},
	}
}

// Deployment returns a Deployment whose Pods have so many containers. Variants
// differ in their words.
func Deployment(containers, generation int, variant uint64) map[string]any {
	draw := rand.New(rand.NewPCG(7, 8+variant))
	labels := map[string]any{"app": "web", "app.kubernetes.io/part-of": "shop"}
	return map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1",
		"metadata": map[string]any{
			"name": "web", "namespace": "shop", "uid": "8b1f", "resourceVersion": "12345", "generation": generation, "labels": labels,
			"annotations":   map[string]any{"deployment.kubernetes.io/revision": fmt.Sprint(generation)},
			"managedFields": []any{map[string]any{"manager": "kubectl", "operation": "Update", "fieldsV1": managedFields(draw)}},
		},
		"spec": map[string]any{
			"replicas": 2 + generation, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
			"selector": map[string]any{"matchLabels": labels},
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": podSpec(draw, containers)},
		},
		"status": map[string]any{"observedGeneration": 3, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5, "availableReplicas": 5},
	}
}

func podSpec(draw *rand.Rand, size int) map[string]any {
	containers := make([]any, size)
	for i := range containers {
		containers[i] = container(draw, i)
	}
	return map[string]any{
		"containers": containers, "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
		"serviceAccountName": "web", "schedulerName": "default-scheduler", "priority": 0, "enableServiceLinks": true,
	}
}

func container(draw *rand.Rand, n int) map[string]any {
	env := make([]any, 8)
	for i := range env {
		env[i] = map[string]any{"name": fmt.Sprintf("SETTING_%d_%d", n, i), "value": word(draw, 4+draw.IntN(40))}
	}
	return map[string]any{
		"name": word(draw, 8), "image": "registry.example.com/" + word(draw, 6) + "/" + word(draw, 12) + ":v1.2.3",
		"args": []any{"--listen=:8080", "--level=" + word(draw, 5), "--path=/var/" + word(draw, 9)}, "env": env,
		"ports": []any{map[string]any{"containerPort": 8080 + n, "protocol": "TCP"}},
		"resources": map[string]any{
			"limits":   map[string]any{"cpu": "500m", "memory": "256Mi"},
			"requests": map[string]any{"cpu": "100m", "memory": "64Mi"},
		},
		"livenessProbe":          map[string]any{"httpGet": map[string]any{"path": "/healthz", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10, "timeoutSeconds": 1},
		"volumeMounts":           []any{map[string]any{"name": "kube-api-access", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
		"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File", "imagePullPolicy": "IfNotPresent",
		"securityContext": map[string]any{"runAsNonRoot": true, "allowPrivilegeEscalation": false},
	}
}

func managedFields(draw *rand.Rand) map[string]any {
	fields := map[string]any{}
	for range 12 {
		fields["f:"+word(draw, 3+draw.IntN(12))] = map[string]any{"f:" + word(draw, 5): map[string]any{}, ".": map[string]any{}}
	}
	return fields
}

// ConfigMap has about size bytes of text files: properties, YAML, and one in three
// with quotes to escape.
func ConfigMap(size int) map[string]any {
	draw := rand.New(rand.NewPCG(3, 4))
	data := map[string]any{}
	formats := []string{"%s=%s\n", "    %s: %s\n", "%s = %q\n"}
	for total := 0; total < size; {
		var file strings.Builder
		for range 20 + draw.IntN(60) {
			fmt.Fprintf(&file, formats[len(data)%len(formats)], word(draw, 4+draw.IntN(16)), word(draw, draw.IntN(60)))
		}
		data[word(draw, 12)+".conf"] = file.String()
		total += file.Len()
	}
	return map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "files", "namespace": "shop"}, "data": data}
}

// CustomResourceDefinition has about size bytes of a schema: many short keys,
// deep.
func CustomResourceDefinition(size int) map[string]any {
	draw := rand.New(rand.NewPCG(5, 6))
	properties := map[string]any{}
	for n := 0; n*170 < size; n++ {
		properties[word(draw, 4+draw.IntN(14))] = map[string]any{
			"type": "object", "description": strings.Repeat(word(draw, 7)+" ", 1+draw.IntN(8)),
			"properties": map[string]any{word(draw, 6): map[string]any{"type": "string", "maxLength": draw.IntN(512)}, word(draw, 9): map[string]any{"type": "boolean", "nullable": true}},
		}
	}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": properties}}
	return map[string]any{
		"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": map[string]any{"name": "things.example.com"},
		"spec": map[string]any{"group": "example.com", "versions": []any{map[string]any{"name": "v1", "schema": schema}}},
	}
}

func word(draw *rand.Rand, n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789-"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[draw.IntN(len(letters))]
	}
	return string(b)
}
