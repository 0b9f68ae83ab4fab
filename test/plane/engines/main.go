// Asks the evaluators of fleet engines about objects: a JSON list of questions on stdin, a JSON list of answers on stdout.
// Each is the library that the engine itself calls.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"github.com/rancher/wrangler/v3/pkg/summary"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
)

type question struct {
	// lua: Argo CD, Karmada and Sveltos; flux; jsonpath: Open Cluster Management; summary: Rancher Fleet.
	Engine string         `json:"engine"`
	Object map[string]any `json:"object"`
	// lua: defines the function `ask`, which gets the object.
	Script string `json:"script"`
	// flux
	Current    string `json:"current"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	// jsonpath
	Path string `json:"path"`
}

func main() {
	var questions []question
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	answers := make([]string, len(questions))
	for i, one := range questions {
		answer, err := ask(one)
		if err != nil {
			answer = "error: " + err.Error()
		}
		answers[i] = answer
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		os.Exit(1)
	}
}

func ask(one question) (string, error) {
	object := whole(one.Object).(map[string]any)
	switch one.Engine {
	case "lua":
		return askLua(object, one.Script)
	case "flux":
		return askFlux(object, one)
	case "jsonpath":
		return askPath(object, one.Path)
	case "summary":
		found := summary.Summarize(&unstructured.Unstructured{Object: object})
		if found.Error {
			return "error", nil
		}
		if found.Transitioning {
			return "transitioning", nil
		}
		return "ready", nil
	}
	return "", fmt.Errorf("no engine %q", one.Engine)
}

// whole turns numbers of JSON into integers, as objects of Kubernetes have them.
func whole(value any) any {
	switch v := value.(type) {
	case float64:
		if v == float64(int64(v)) {
			return int64(v)
		}
	case map[string]any:
		for key, part := range v {
			v[key] = whole(part)
		}
	case []any:
		for i, part := range v {
			v[i] = whole(part)
		}
	}
	return value
}

func askLua(object map[string]any, script string) (string, error) {
	l := lua.NewState()
	defer l.Close()
	if err := l.DoString(script); err != nil {
		return "", err
	}
	if err := l.CallByParam(lua.P{Fn: l.GetGlobal("ask"), NRet: 1, Protect: true}, toLua(l, object)); err != nil {
		return "", err
	}
	return l.Get(-1).String(), nil
}

func toLua(l *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		table := l.NewTable()
		for _, part := range v {
			table.Append(toLua(l, part))
		}
		return table
	case map[string]any:
		table := l.NewTable()
		for key, part := range v {
			table.RawSetString(key, toLua(l, part))
		}
		return table
	}
	return lua.LNil
}

func askFlux(object map[string]any, one question) (string, error) {
	evaluator, err := cel.NewStatusEvaluator(&kustomize.HealthCheckExpressions{
		Current: one.Current, InProgress: one.InProgress, Failed: one.Failed,
	})
	if err != nil {
		return "", err
	}
	result, err := evaluator.Evaluate(context.Background(), &unstructured.Unstructured{Object: object})
	if err != nil {
		return "", err
	}
	return string(result.Status), nil
}

func askPath(object map[string]any, path string) (string, error) {
	parser := jsonpath.New("feedback").AllowMissingKeys(true)
	if err := parser.Parse("{" + path + "}"); err != nil {
		return "", err
	}
	found, err := parser.FindResults(object)
	if err != nil {
		return "", err
	}
	var values []string
	for _, list := range found {
		for _, value := range list {
			values = append(values, fmt.Sprint(value.Interface()))
		}
	}
	return strings.Join(values, ","), nil
}
